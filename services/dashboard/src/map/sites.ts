/** Sites as the map shows them: their record with its place, their state now, and their worst feed. */
import type { SiteListed, Strip, StripNow } from '../api'
import type { Overview, Site } from '../overview'
import type { MarkedState } from '../ui/marks/states'
import { siteState } from '../view'

/** The states of the map, the worst first. */
export const MAP_STATES = ['down', 'late', 'catching-up', 'unmeasured', 'within', 'never'] as const
export type MapState = (typeof MAP_STATES)[number]

export interface MapSite {
  site: string
  organisation: string
  state: MapState
  isRelay: boolean
  /** Names of the feeds that it gets. */
  feeds: string[]
  place: Placed | null
  /** The name of its place, with or without coordinates. */
  placeText: string
  /** The last 15 minutes; null if the hub's strip has no row of it. */
  now: StripNow | null
  /** As the overview has it; null while it has not come. */
  seen: Site | null
}

/** Degrees north and east. */
export interface Placed {
  latitude: number
  longitude: number
}

/** A site whose place is known. */
export type PlacedSite = MapSite & { place: Placed }

/** The part of a site's record that the map shows. */
export type SiteRecord = Pick<SiteListed, 'site' | 'organisation' | 'state' | 'relay' | 'active' | 'place'>

/** Joins the records with the overview and the strip of the last quarter hour; removed sites are left out. */
export function mapSitesOf(listed: readonly SiteRecord[], overview: Overview, strip: Strip | null): MapSite[] {
  const seen = new Map(overview.sites.map((one) => [one.site, one]))
  const rows = new Map(strip?.rows.map((row) => [row.site, row.now]) ?? [])
  const others = strip?.others?.now.state ?? null
  return listed
    .filter((one) => one.active && one.state !== 'removed')
    .map((one) => {
      const now = rows.get(one.site) ?? null
      const live = seen.get(one.site) ?? null
      return {
        site: one.site,
        organisation: one.organisation,
        state: stateOf(one.state, live, now?.state ?? inherited(live, others, overview.now)),
        isRelay: one.relay,
        feeds: live?.feeds.map((feed) => feed.feed) ?? [],
        place: placedOf(one.place),
        placeText: one.place.text,
        now,
        seen: live,
      }
    })
}

/** Coordinates that a map can draw; null if one is missing or out of bounds. */
export function placedOf({ latitude, longitude }: SiteListed['place']): Placed | null {
  if (latitude === null || longitude === null) return null
  const isOnEarth = Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180
  return isOnEarth ? { latitude, longitude } : null
}

export function isPlaced(site: MapSite): site is PlacedSite {
  return site.place !== null
}

export interface Filter {
  /** Null: all. */
  feed: string | null
  state: MapState | null
}

/** The filter of an address; values that mean nothing filter nothing. */
export function filterOf(query: URLSearchParams): Filter {
  const state = query.get('state')
  return { feed: query.get('feed') || null, state: MAP_STATES.find((one) => one === state) ?? null }
}

export function filtered<Shown extends MapSite>(sites: readonly Shown[], { feed, state }: Filter): Shown[] {
  return sites.filter(
    (one) => (feed === null || one.feeds.includes(feed)) && (state === null || one.state === state),
  )
}

/** The worst state first, then the largest share of an objective, then by name. */
export function worstFirst<Shown extends MapSite>(sites: readonly Shown[]): Shown[] {
  return sites.toSorted(
    (one, other) =>
      rankOf(one.state) - rankOf(other.state) ||
      (other.now?.share ?? 0) - (one.now?.share ?? 0) ||
      one.site.localeCompare(other.site),
  )
}

export function rankOf(state: MapState): number {
  return MAP_STATES.indexOf(state)
}

/** Down and late sites count as bad: what a cluster's ring shows. */
export function isBad(state: MapState): boolean {
  return state === 'down' || state === 'late'
}

/** The number of sites in each state. */
export function countsOf(sites: readonly MapSite[]): Record<MapState, number> {
  const counts = { down: 0, late: 0, 'catching-up': 0, unmeasured: 0, within: 0, never: 0 }
  for (const { state } of sites) counts[state] += 1
  return counts
}

/** The marks of the states. */
export const MARKS: Record<MapState, MarkedState> = {
  down: 'critical',
  late: 'warning',
  'catching-up': 'catching-up',
  unmeasured: 'unknown',
  within: 'within',
  never: 'never',
}

export const MAP_WORDS: Record<MapState, string> = {
  down: 'down',
  late: 'late',
  'catching-up': 'catching up',
  unmeasured: 'not measured',
  within: 'within the objectives',
  never: 'never connected',
}

/** A relay has a connection and no latency. */
export function relayWords({ seen }: MapSite): string {
  return seen?.connected ? 'relay, connected' : 'relay, not connected'
}

type Row = StripNow['state']

/** Green needs a latency within the objective: a site that is connected and silent is not measured. */
export function stateOf(session: SiteListed['state'], live: Site | null, row: Row | null): MapState {
  if (session === 'never-enrolled' || session === 'never-connected') return 'never'
  if (session === 'away' || row === 'down') return 'down'
  if (row === 'late') return 'late'
  if (live !== null && siteState(live) === 'catching up') return 'catching-up'
  return row === 'within' ? 'within' : 'unmeasured'
}

/**
 * The state of a site beyond the strip's rows. The strip has the worst of them: if it is within its objectives, so is
 * each of the others that received something in these minutes.
 */
export function inherited(live: Site | null, others: Row | null, now: string): Row | null {
  if (others !== 'within' || !live?.last_receipt) return null
  return Date.parse(now) - Date.parse(live.last_receipt) <= MEASURED_MS ? 'within' : null
}

const MEASURED_MS = 15 * 60_000
