/** Rows of the selected site's card, and the lines that its selection draws. */
import type { Incident } from '../api'
import type { Feed, SiteFeed } from '../overview'
import type { LatencyRow } from '../selfservice'
import { greatCircle } from './projection'
import type { MapSite, PlacedSite } from './sites'

/** The feeds of a site, the worst one first, as many as a card has room for. */
export function shownFeeds(site: MapSite): { shown: SiteFeed[]; more: number } {
  const worst = site.now?.feed ?? null
  const all = (site.seen?.feeds ?? []).toSorted(
    (one, other) =>
      Number(other.feed === worst) - Number(one.feed === worst) || one.feed.localeCompare(other.feed),
  )
  return { shown: all.slice(0, FEEDS_SHOWN), more: Math.max(all.length - FEEDS_SHOWN, 0) }
}

/** p99 from the hub to the site, in milliseconds, by the transport in use or else by that of most products. */
export function p99Of(rows: readonly LatencyRow[], { feed, transport }: SiteFeed): number | null {
  const its = rows.filter((row) => row.feed === feed && row.kind === 'distribution' && row.count > 0)
  const most = its.toSorted((one, other) => other.count - one.count)[0]
  return (its.find((row) => row.transport === transport) ?? most)?.p99 ?? null
}

/** The site's first incident: the hub orders them, the worst first. */
export function incidentOf(site: string, incidents: readonly Incident[]): Incident | null {
  return incidents.find((one) => one.site === site && !one.over) ?? null
}

/** Great circles from a site to the relays that its feeds come through; the hub itself has no place. */
export function relayLines(site: MapSite, relays: readonly PlacedSite[], feeds: readonly Feed[]): string[] {
  const from = site.place
  if (from === null) return []
  const used = new Set(site.seen?.feeds.map((one) => relayOf(one, feeds)) ?? [])
  return relays.filter((one) => used.has(one.site)).map((one) => greatCircle(from, one.place))
}

function relayOf({ feed, leg }: SiteFeed, feeds: readonly Feed[]): string | null {
  const legs = feeds.find((one) => one.feed === feed)?.plan?.legs ?? []
  return legs.find((one) => one.leg === leg)?.relay ?? null
}

const FEEDS_SHOWN = 6
