import type { Judged } from './alarms'

/** The document of `GET /v1/overview`, which the event `overview` carries too. `null` means: not measured. */
export interface Overview {
  hub: { name: string; version: string; started_at: string; uptime_s: number; node: NodeState }
  now: string
  faults: Fault[]
  throughput: Throughput
  feeds: Feed[]
  sites: Site[]
  upstreams: Upstream[]
  circuits: Circuit[]
}

export interface NodeState {
  running: boolean
  restarts: number
}

export interface Fault extends Judged {
  at: string
  /** Of the alarm that is raised for it if it lasts; `null` for what raises none. */
  kind: string | null
  /** Its number, if it goes on. */
  alarm: number | null
  sentence: string
  feed: string | null
  site: string | null
  next: string | null
}

export interface Throughput {
  in_bps: number
  out_bps: number
  unicast_equivalent_bps: number
  egress_bytes: number
  unicast_equivalent_bytes: number
}

export interface Feed {
  feed: string
  class: string
  products: number
  bytes: number
  rate_bps: number
  rate_history: number[]
  mean_bps: number | null
  peak_1s_bps: number | null
  peak_60s_bps: number | null
  silent_share: number | null
  fan_out: number
  head: number
  plan: Plan | null
  latency: Latency
  objective_ms: number | null
}

export interface Plan {
  version: number
  transport: string
  reason: string
  since: string
  pinned: boolean
  legs: Leg[]
  candidates: Candidate[]
  floor?: Floor | null
  flip?: string | null
  would_be?: string | null
}

/** The machines' own time, which is part of each predicted latency. */
export interface Floor {
  p50_ms: number
  p95_ms: number
  p99_ms: number
  hub_p50_ms: number | null
  slowest_site: string | null
  slowest_site_p50_ms: number | null
  deliveries: number
}

export interface Leg {
  leg: number
  transport: string
  sites: number
  egress_bytes: number
  products: number
  bytes: number
}

export interface Candidate {
  transport: string
  feasible: boolean
  reason: string
  egress_bps: number | null
  predicted_p99_ms: number | null
}

export interface Latency {
  distribution_ms: Quantiles | null
  end_to_end_ms: Quantiles | null
  history: Minute[]
}

export interface Quantiles {
  p50: number | null
  p95: number | null
  p99: number | null
  max: number | null
  count: number
  negative: number
  bound: number | null
}

export interface Minute {
  minute: string
  p50: number | null
  p99: number | null
}

export interface Site {
  site: string
  organisation: string | null
  /** What the hub says of it, in the same words everywhere. */
  state: 'removed' | 'never-enrolled' | 'never-connected' | 'connected' | 'stands-by' | 'away'
  connected: boolean
  /** Connected, and served by another hub. */
  stand_by: boolean
  since: string | null
  /** Why it is away, if that is known. */
  reason: string | null
  /** What its next products are, as far as they are due: counted by the hub's own log. */
  behind_products: number | null
  behind_bytes: number | null
  /** The age of the oldest of them. */
  behind_s: number | null
  /** What left the hub's log before the site had it. */
  lost_products: number | null
  lost_bytes: number | null
  /** The count goes on: it is at least so much. */
  behind_counting: boolean | null
  clock_offset_ms: number | null
  clock_bound_ms: number | null
  round_trip_ms: number | null
  path: Path
  stored: number
  last_receipt: string | null
  feeds: SiteFeed[]
}

/** What was measured of the way to a site beside round trip and clock. */
export interface Path {
  /** The share of segments that were sent again of late. */
  loss: number | null
  rate_bps: number | null
  /** There was nothing more to send. */
  rate_is_lower_bound: boolean | null
  congestion_control: string | null
  multicast: Hearing
  circuits: Offer[]
}

/** Whether a site hears groups, as it was when it last joined one. */
export interface Hearing {
  state: 'heard' | 'not-heard' | 'too-slow' | 'not-tried' | 'not-allowed'
  feed: string | null
  at: string | null
  again_at: string | null
  reason: string
}

/** A circuit to the site; `enough` is `null` until it was measured. */
export interface Offer {
  circuit: number
  state: string
  rate_bps: number
  measured_bps: number | null
  enough: boolean | null
}

/** What there is nothing to say of is left out. */
export interface SiteFeed {
  feed: string
  transport: string | null
  settled_to: number
  pending: number
  /** Why the site stores nothing of the feed at the moment, in its words. */
  trouble?: string
  /** Products that came behind a later one, against the order that was asked for. */
  late?: number
  action_failed?: ActionFailed
}

/** What a site's own rules could not do with a product. */
export interface ActionFailed {
  rule: string
  /** Of the program, or minus the signal that ended it; `null` if none ended. */
  exit: number | null
  last_error: string
  product: string
  sequence: number
}

/** A hub that this hub is a site of. */
export interface Upstream {
  upstream: string
  address: string
  /** None: every feed that both hubs have. */
  feeds: string[]
  connected: boolean
  since: string | null
  /** What it calls itself; `null` until it was first heard. */
  hub: string | null
  reason: string | null
}

/** A rate reserved between the hub and sites; rates are bits per second of Ethernet frames, to the sites. */
export interface Circuit {
  circuit: number
  state: string
  /** Why it is in this state; empty for one that carries what was reserved. */
  reason: string
  since: string | null
  sites: string[]
  description: string
  rate_out_bps: number
  /** By the site that gets least; `null` until it was measured. */
  measured_out_bps: number | null
  used_out_bps: number
  begin: string
  end: string | null
}

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
  ['throughput', isRecord],
  ['feeds', Array.isArray],
  ['sites', Array.isArray],
  ['upstreams', Array.isArray],
  ['circuits', Array.isArray],
]
