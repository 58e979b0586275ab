/** Sites as rows of their page: state, worst feed of the last 15 minutes, and the feeds of the drawer. */
import type { Incident, Strip, StripNow } from '../api'
import { bytes, latency, percent, whole } from '../format'
import { inherited, MAP_STATES, MAP_WORDS, MARKS, stateOf } from '../map/sites'
import type { Feed, Overview, Site } from '../overview'
import type { Column, Filters } from '../rows/ordering'
import type { PlainView } from '../rows/rowview'
import type { LatencyRow } from '../selfservice'
import type { MarkedState } from '../ui/marks/states'
import { siteState } from '../view'

/** The states of the map, and that of a site which another hub serves; the worst first. */
export const SITE_STATES = [...MAP_STATES, 'stands-by'] as const
export type RowState = (typeof SITE_STATES)[number]

export interface SiteRow {
  site: Site
  state: RowState
  /** The last 15 minutes; null if the hub's strip has no row of it. */
  now: StripNow | null
}

/** `strip` is null until it was read: no site is within its objectives before. */
export function siteRows(overview: Pick<Overview, 'sites' | 'now'>, strip: Strip | null): SiteRow[] {
  const rows = new Map(strip?.rows.map((row) => [row.site, row.now]) ?? [])
  const others = strip?.others?.now.state ?? null
  return overview.sites.map((site) => {
    const now = rows.get(site.site) ?? null
    const state = stateOf(site.state, site, now?.state ?? inherited(site, others, overview.now))
    return { site, state: site.state === 'stands-by' ? 'stands-by' : state, now }
  })
}

/** The words of the state: the session's, with the lateness that it does not tell. */
export function stateWords({ site, state }: SiteRow): string {
  return state === 'late' ? `late, ${siteState(site)}` : siteState(site)
}

/** The worst feed as a share of its objective: `164 %`. */
export function worstWords({ now, state }: SiteRow): string {
  if (now?.share != null) return percent(now.share)
  return state === 'within' ? 'within' : 'not measured'
}

/** The backlog in a cell; the drawer has the rest. */
export function backlogWords({ behind_products, behind_bytes, behind_counting }: Site): string {
  if (behind_products === null) return '–'
  if (behind_products === 0) return 'nothing'
  return `${behind_counting ? 'at least ' : ''}${whole(behind_products)}, ${bytes(behind_bytes)}`
}

/** The state in one sentence: the worst incident, or the session with its reason. */
export function sentenceOfSite(row: SiteRow, incidents: readonly Incident[]): string {
  const own = incidents.filter((one) => one.site === row.site.site && !one.over && one.silence === null)
  const titles = own.slice(0, MOST_TITLES).map((one) => one.title)
  const more = own.length > titles.length ? [`${whole(own.length - titles.length)} more`] : []
  if (titles.length > 0) return `${[...titles, ...more].join('; ')}.`
  const reason = row.site.reason && !row.site.connected ? `: ${row.site.reason}` : ''
  const { now } = row
  if (now?.p99_ms == null) return `${capital(row.site.state_words)}${reason}.`
  return `Its worst feed is ${now.feed}: p99 ${latency(now.p99_ms)}, the objective ${latency(now.objective_ms)}.`
}

/** A feed of a site. */
export interface FeedOfSite {
  feed: string
  transport: string | null
  p99_ms: number | null
  bound_ms: number | null
  /** p99 as a share of the feed's objective. */
  share: number | null
  /** Products that it lacks; null if the session does not say. */
  pending: number | null
  trouble: string
}

/** The feeds of a site, those nearest to their objective first, then by name. */
export function feedsOfSite(site: Site, feeds: readonly Feed[], latencies: readonly LatencyRow[]): FeedOfSite[] {
  const measured = new Map<string, LatencyRow>()
  for (const row of latencies) {
    if (row.kind !== 'distribution') continue
    const known = measured.get(row.feed)
    if (known === undefined || row.count > known.count) measured.set(row.feed, row)
  }
  const objectives = new Map(feeds.map((one) => [one.feed, one.objective_ms]))
  const progress = new Map(site.feeds.map((one) => [one.feed, one]))
  return [...new Set([...progress.keys(), ...measured.keys()])]
    .map((feed) => {
      const row = measured.get(feed)
      const its = progress.get(feed)
      const p99_ms = row?.p99 ?? null
      const objective_ms = objectives.get(feed) ?? null
      return {
        feed,
        transport: its?.transport ?? row?.transport ?? null,
        p99_ms,
        bound_ms: row?.bound ?? null,
        share: p99_ms === null || p99_ms < 0 || !objective_ms ? null : p99_ms / objective_ms,
        pending: its?.pending ?? null,
        trouble: its?.trouble ?? '',
      }
    })
    .toSorted((one, other) => (other.share ?? -1) - (one.share ?? -1) || one.feed.localeCompare(other.feed))
}

export const SITE_MARKS: Record<RowState, MarkedState> = { ...MARKS, 'stands-by': 'info' }
export const SITE_WORDS: Record<RowState, string> = { ...MAP_WORDS, within: 'within', 'stands-by': 'stands by' }
export const SITE_PLAIN: PlainView = { sort: 'site', choices: ['feed'] }
export const SITE_COLUMNS: Column<SiteRow>[] = [
  { key: 'site', title: 'Site', card: 'title', value: (row) => row.site.site },
  { key: 'organisation', title: 'Organisation', isExtra: true, value: (row) => row.site.organisation || null },
  { key: 'state', title: 'State', card: 'second', width_px: 152, value: (row) => rankOf(row.state) },
  {
    key: 'worst',
    title: 'Worst p99 now',
    width_px: 176,
    isFigure: true,
    card: 'end',
    value: (row) => row.now?.share ?? null,
  },
  { key: 'feeds', title: 'Feeds', width_px: 72, isFigure: true, isExtra: true, value: (row) => row.site.feeds.length },
  { key: 'behind', title: 'Behind by', width_px: 144, isFigure: true, value: (row) => row.site.behind_products },
  { key: 'stored', title: 'Stored', width_px: 88, isFigure: true, isExtra: true, value: (row) => row.site.stored },
  {
    key: 'receipt',
    title: 'Last receipt',
    width_px: 120,
    isFigure: true,
    value: ({ site }) => (site.last_receipt === null ? null : Date.parse(site.last_receipt)),
  },
]
export const SITE_FILTERS: Filters<SiteRow> = {
  name: (row) => row.site.site,
  text: (row) => `${row.site.site} ${row.site.organisation} ${stateWords(row)}`,
  state: (row) => row.state,
  choices: { feed: (row, chosen) => row.site.feeds.some((one) => one.feed === chosen) },
}

function rankOf(state: RowState): number {
  return SITE_STATES.indexOf(state)
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const MOST_TITLES = 2
