/** Feeds as rows of their page: state, share of the objective, and the sentence of the drawer. */
import type { Incident } from '../api'
import { latency, megabits } from '../format'
import { many } from '../now/incidents'
import type { Feed, Quantiles, Site, Throughput } from '../overview'
import type { Column, Filters } from '../rows/ordering'
import type { PlainView } from '../rows/rowview'
import type { LatencyRow } from '../selfservice'
import type { MarkedState } from '../ui/marks/states'
import { feedsInOrder } from '../view'

/** The states of a feed, the worst first. */
export const FEED_STATES = ['critical', 'warning', 'late', 'unmeasured', 'within'] as const
export type FeedState = (typeof FEED_STATES)[number]

export interface FeedRow {
  feed: Feed
  state: FeedState
  /** Incidents that name the feed, the worst first. */
  incidents: Incident[]
  /** p99 of the last hour as a share of the objective; null if it was not measured. */
  share: number | null
  /** Its place among the classes and names, the most urgent class first. */
  place: number
}

export function feedRows(feeds: readonly Feed[], incidents: readonly Incident[]): FeedRow[] {
  const open = incidents.filter((one) => !one.over && one.silence === null)
  return feedsInOrder([...feeds]).map((feed, place) => {
    const its = open.filter((one) => one.feed === feed.feed)
    const share = shareOf(feed)
    return { feed, state: stateOfFeed(its, share), incidents: its, share, place }
  })
}

/** p99 over the objective. A latency below zero is an error of the clocks, and no measurement. */
export function shareOf(feed: Feed): number | null {
  const measured: Quantiles | null = feed.latency.distribution_ms
  const p99 = measured?.count ? measured.p99 : null
  return p99 === null || p99 < 0 || feed.objective_ms <= 0 ? null : p99 / feed.objective_ms
}

function stateOfFeed(incidents: readonly Incident[], share: number | null): FeedState {
  if (incidents.some((one) => one.severity === 'critical')) return 'critical'
  if (share !== null && share > 1) return 'late'
  if (incidents.some((one) => one.severity === 'warning')) return 'warning'
  return share === null ? 'unmeasured' : 'within'
}

/** The state in one sentence: incidents first, then the latency. */
export function sentenceOfFeed(row: FeedRow): string {
  const titles = row.incidents.slice(0, MOST_TITLES).map((one) => one.title)
  const more = row.incidents.length - titles.length
  const rest = more > 0 ? [many(more, 'more incident')] : []
  if (titles.length > 0) return `${[...titles, ...rest].join('; ')}.`
  if (row.share === null) return 'No latency was measured in the last hour.'
  const { latency: measured, objective_ms } = row.feed
  return `p99 of the last hour is ${latency(measured.distribution_ms.p99)}, the objective ${latency(objective_ms)}.`
}

/** A site of a feed: its record, and its latency on the transport with most products. */
export interface SiteOfFeed {
  site: string
  /** Null if the overview has no such site, as after its removal. */
  seen: Site | null
  transport: string | null
  p99_ms: number | null
  /** The largest error of the clocks' comparison. */
  bound_ms: number | null
}

/** The sites of a feed, the slowest first; those without a latency come last, by name. */
export function sitesOfFeed(
  { feed, plan }: Feed,
  sites: readonly Site[],
  latencies: readonly LatencyRow[],
): SiteOfFeed[] {
  const measured = new Map<string, LatencyRow>()
  for (const row of latencies) {
    const known = measured.get(row.site)
    if (known === undefined || row.count > known.count) measured.set(row.site, row)
  }
  const seen = new Map(sites.map((one) => [one.site, one]))
  const planned = plan?.legs.flatMap((leg) => leg.site_names) ?? []
  const taking = sites.filter((one) => one.feeds.some((its) => its.feed === feed)).map((one) => one.site)
  return [...new Set([...planned, ...taking, ...measured.keys()])]
    .map((site) => {
      const row = measured.get(site)
      const progress = seen.get(site)?.feeds.find((its) => its.feed === feed)
      const transport = progress?.transport ?? row?.transport ?? null
      return { site, seen: seen.get(site) ?? null, transport, p99_ms: row?.p99 ?? null, bound_ms: row?.bound ?? null }
    })
    .toSorted((one, other) => (other.p99_ms ?? -1) - (one.p99_ms ?? -1) || one.site.localeCompare(other.site))
}

type Rates = Pick<Throughput, 'in_bps' | 'out_bps' | 'unicast_equivalent_bps'>

/** The feeds together: `13 feeds, 111 Mb/s in`. */
export function totalOf(feeds: readonly Feed[], { in_bps, out_bps, unicast_equivalent_bps }: Rates): string {
  const [arrived, sent, copies] = [in_bps, out_bps, unicast_equivalent_bps].map((rate_bps) => megabits(rate_bps))
  return `${many(feeds.length, 'feed')}, ${arrived} Mb/s in, ${sent} Mb/s out; by unicast ${copies} Mb/s`
}

export const FEED_MARKS: Record<FeedState, MarkedState> = {
  critical: 'critical',
  warning: 'warning',
  late: 'warning',
  unmeasured: 'unknown',
  within: 'within',
}
export const FEED_WORDS: Record<FeedState, string> = {
  critical: 'critical',
  warning: 'warning',
  late: 'late',
  unmeasured: 'not measured',
  within: 'within',
}
export const FEED_PLAIN: PlainView = { sort: 'class', choices: ['class', 'transport'] }
export const FEED_COLUMNS: Column<FeedRow>[] = [
  { key: 'feed', title: 'Feed', width_px: 184, card: 'title', value: (row) => row.feed.feed },
  { key: 'class', title: 'Class', width_px: 112, isExtra: true, value: (row) => row.place },
  { key: 'rate', title: 'Mb/s', width_px: 80, isFigure: true, value: (row) => row.feed.rate_bps },
  {
    key: 'peak',
    title: 'Peak / mean',
    width_px: 112,
    isFigure: true,
    isExtra: true,
    value: ({ feed }) => (feed.mean_bps > 0 ? feed.peak_1s_bps / feed.mean_bps : null),
  },
  { key: 'sites', title: 'Sites', width_px: 72, isFigure: true, value: (row) => row.feed.fan_out },
  { key: 'transport', title: 'Transport, and why', card: 'second', value: (row) => row.feed.plan?.transport ?? null },
  { key: 'p99', title: 'p99, objective', width_px: 168, isFigure: true, card: 'end', value: (row) => row.share },
]
export const FEED_FILTERS: Filters<FeedRow> = {
  name: (row) => row.feed.feed,
  text: ({ feed }) => `${feed.feed} ${feed.class} ${feed.plan?.transport ?? ''} ${feed.plan?.clause ?? ''}`,
  state: (row) => row.state,
  choices: {
    class: (row, chosen) => row.feed.class === chosen,
    transport: (row, chosen) => row.feed.plan?.transport === chosen,
  },
}

const MOST_TITLES = 2
