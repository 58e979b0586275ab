/** Legs of the present plans, looked up by feed and site, and the groups that they make. */
import type { Feed, Leg, SiteFeed } from '../../overview'
import { groupedBy } from './model'

export interface Group {
  id: string
  name: string
  feeds: string[]
  /** The pace in the plans, summed up; null if a plan has none. */
  pace_bps: number | null
}

interface FeedLegs {
  byNumber: Map<number, Leg>
  ofSite: Map<string, Leg>
  groups: Map<number, Group>
}

export class Legs {
  readonly groups: readonly Group[]
  private readonly ofFeed = new Map<string, FeedLegs>()

  constructor(feeds: readonly Feed[]) {
    for (const { feed, plan } of feeds) {
      const legs = plan?.legs ?? []
      this.ofFeed.set(feed, {
        byNumber: new Map(legs.map((leg) => [leg.leg, leg])),
        ofSite: new Map(legs.flatMap((leg) => leg.site_names.map((site) => [site, leg]))),
        groups: new Map(),
      })
    }
    const ids = new Set<string>()
    this.groups = sharedLegs(feeds).map((legs) => {
      const group = groupOf(legs, ids)
      ids.add(group.id)
      for (const { feed, leg } of legs) this.ofFeed.get(feed)?.groups.set(leg.leg, group)
      return group
    })
  }

  /** The leg that serves the feed to the site now, or else the one that the plan has for it. */
  legOf(feed: string, site: string, live: SiteFeed | null): Leg | null {
    const known = this.ofFeed.get(feed)
    const serving = live === null ? undefined : known?.byNumber.get(live.leg)
    return serving ?? known?.ofSite.get(site) ?? null
  }

  groupOf(feed: string, leg: Leg): Group | null {
    return this.ofFeed.get(feed)?.groups.get(leg.leg) ?? null
  }
}

interface FeedLeg {
  feed: string
  leg: Leg
}

/** Multicast legs with the same sites behind the same relay are one group on the page: thirty feeds are one node. */
function sharedLegs(feeds: readonly Feed[]): FeedLeg[][] {
  const all = feeds.flatMap(({ feed, plan }) => (plan?.legs ?? []).map((leg) => ({ feed, leg })))
  const groups = all.filter(({ leg }) => leg.transport === 'multicast' && leg.site_names.length > 0)
  const sitesOf = ({ leg }: FeedLeg) => `${leg.relay ?? ''} ${leg.site_names.toSorted().join(' ')}`
  return [...groupedBy(groups, sitesOf).values()]
}

/** Legs of two feeds may share an address and have different sites. */
function groupOf(legs: readonly FeedLeg[], taken: ReadonlySet<string>): Group {
  const addresses = legs.map(({ feed, leg }) => addressOf(leg) ?? `${leg.leg}-${feed}`).toSorted()
  const paces = legs.map(({ leg }) => leg.rate_bps ?? null)
  return {
    id: taken.has(`group~${addresses[0]}`) ? `group~${addresses[0]}-${taken.size}` : `group~${addresses[0]}`,
    name: legs.length === 1 ? `Group ${addresses[0]}` : `${legs.length} groups`,
    feeds: legs.map(({ feed }) => feed).toSorted(),
    pace_bps: paces.reduce((sum, pace) => (sum === null || pace === null ? null : sum + pace), 0),
  }
}

function addressOf({ group, port }: Leg): string | null {
  if (group == null) return null
  if (port == null) return group
  return group.includes(':') ? `[${group}]:${port}` : `${group}:${port}`
}
