import type { Overview } from './api'

export type {
  Candidate,
  Circuit,
  Fault,
  FeedLatency as Latency,
  FeedSeen as Feed,
  Figures as Quantiles,
  Floor,
  Hearing,
  Leg,
  MinuteLatency as Minute,
  NodeState,
  Offer,
  Overview,
  OwnClock,
  PathFacts as Path,
  PlanSeen as Plan,
  SiteFeed,
  SiteSeen as Site,
  Throughput,
  UpstreamSeen as Upstream,
} from './api'

/** Reads the text of an overview; throws a sentence when it is something else. */
export function parseOverview(text: string): Overview {
  const found: unknown = JSON.parse(text)
  if (!isRecord(found)) throw new Error('The hub sent something that is not an overview.')
  const missing = REQUIRED.filter(([key, check]) => !check(found[key])).map(([key]) => key)
  if (missing.length > 0) throw new Error(`The hub's overview lacks ${missing.join(', ')}.`)
  return found as unknown as Overview
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTime(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value))
}

const REQUIRED: [string, (value: unknown) => boolean][] = [
  ['hub', isRecord],
  ['now', isTime],
  ['faults', Array.isArray],
  ['status', isRecord],
  ['incidents', Array.isArray],
  ['throughput', isRecord],
  ['feeds', Array.isArray],
  ['sites', Array.isArray],
  ['upstreams', Array.isArray],
  ['circuits', Array.isArray],
]
