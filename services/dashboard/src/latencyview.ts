/** One look at latency: what the address says, what is asked of the hub, and what is read out of the answers. */
import type { Arrivals, LatencyKind, LatencyPoint } from './api'

export type { Arrivals, Bin, Figures, LatencyKind as Kind, LatencyPoint as Point } from './api'

export interface Look {
  feed: string
  /** `null`: all sites. */
  site: string | null
  kind: LatencyKind
  /** So many minutes up to `until`. */
  minutes: number
  /** RFC 3339; `null`: now. */
  until: string | null
}

export interface Steps<Of> {
  step_minutes: number
  points: Of[]
}

export interface Series<Of> extends Steps<Of> {
  /** The range that was asked for; the end is not part of it. */
  from: string
  to: string
}

/** A series of steps without products. */
export interface Gap {
  from: string
  to: string
  minutes: number
  /** The feed's products during the gap. */
  products: number
}

/** The look that an address asks for; `feed` is taken where it names none. */
export function lookOf(query: URLSearchParams, feed: string): Look {
  const from = time(query.get('from'))
  const to = time(query.get('to'))
  const until = to ?? null
  const end_ms = until === null ? Date.now() : Date.parse(until)
  const asked = Number(query.get('minutes') ?? '')
  const minutes = from !== null ? (end_ms - Date.parse(from)) / 60_000 : asked > 0 ? asked : 60
  const kind = KINDS.find((one) => one === query.get('of')) ?? 'distribution'
  return {
    feed: query.get('feed') || feed,
    site: query.get('site') || null,
    kind,
    minutes: Math.min(Math.max(Math.ceil(minutes), 1), MOST_MINUTES),
    until,
  }
}

/** What is asked of the hub, behind `latency/…?`. */
export function questionOf(look: Look): string {
  const asked = new URLSearchParams({ feed: look.feed, kind: look.kind, minutes: String(look.minutes) })
  if (look.site !== null) asked.set('site', look.site)
  if (look.until !== null) asked.set('until', look.until)
  return asked.toString()
}

/** The same for its history: steps of an hour while those of the volume are no longer. */
export function historyOf(look: Look): string {
  const byHour = look.minutes > 1440 && look.minutes <= 14 * 1440
  return `${questionOf(look)}${byHour ? '&step=hour' : ''}`
}

/** Every step of the range that was asked for, in seconds: those without a point are gaps and not a line. */
export function stepsOf(series: Series<{ at: string }>): number[] {
  const length_s = series.step_minutes * 60
  const inside = [Date.parse(series.from) / 1000, Date.parse(series.to) / 1000 - 1].map((at_s) =>
    Math.floor(at_s / length_s),
  )
  const [first = 0, last = -1] = inside
  return Array.from({ length: Math.max(last - first + 1, 0) }, (_, place) => (first + place) * length_s)
}

/** The point of each step; `null` where there is none. */
export function pointsOf<Of extends { at: string }>(series: Series<Of>, steps_s: number[]): (Of | null)[] {
  const known = new Map(series.points.map((point) => [Date.parse(point.at) / 1000, point]))
  return steps_s.map((at_s) => known.get(at_s) ?? null)
}

/** The point with the worst value; `null` where nothing was measured. */
export function worst(points: LatencyPoint[]): LatencyPoint | null {
  return points.reduce<LatencyPoint | null>(
    (found, point) => ((point.max ?? -Infinity) > (found?.max ?? -Infinity) ? point : found),
    null,
  )
}

/** Steps in which the feed brought something and nothing was reported, joined where nothing lies between them. */
export function gaps(reported: Steps<LatencyPoint>, arrived: Steps<Arrivals>): Gap[] {
  const step_ms = Math.max(reported.step_minutes, arrived.step_minutes) * 60_000
  const seen = new Set(reported.points.filter((point) => point.count > 0).map((point) => stepOf(point.at, step_ms)))
  const found: Gap[] = []
  let open: Gap | null = null
  for (const [step, products] of perStep(arrived.points, step_ms)) {
    if (seen.has(step)) {
      open = null
      continue
    }
    const to = new Date((step + 1) * step_ms)
    // A report between two silent steps ends a gap, even if nothing came into the feed in its own step.
    if (open !== null && !between(seen, Date.parse(open.to) / step_ms, step)) {
      open.to = seconds(to)
      open.products += products
    } else {
      open = { from: seconds(new Date(step * step_ms)), to: seconds(to), minutes: 0, products }
      found.push(open)
    }
  }
  return found.map((gap) => ({ ...gap, minutes: (Date.parse(gap.to) - Date.parse(gap.from)) / 60_000 }))
}

/** Gaps between a feed's products, longest first; the time before the first and after the last is not a gap. */
export function silences(arrived: Steps<Arrivals>): Gap[] {
  const step_ms = arrived.step_minutes * 60_000
  const steps = [...perStep(arrived.points, step_ms).keys()]
  const found = steps.slice(1).flatMap((step, place) => {
    const before = steps[place] ?? step
    if (step - before <= 1) return []
    const [from, to] = [new Date((before + 1) * step_ms), new Date(step * step_ms)]
    return [{ from: seconds(from), to: seconds(to), minutes: (to.getTime() - from.getTime()) / 60_000, products: 0 }]
  })
  return found.toSorted((one, other) => other.minutes - one.minutes)
}

function perStep(points: Arrivals[], step_ms: number): Map<number, number> {
  const steps = new Map<number, number>()
  for (const point of points) {
    const step = stepOf(point.at, step_ms)
    steps.set(step, (steps.get(step) ?? 0) + point.products)
  }
  return new Map([...steps].filter(([, products]) => products > 0).toSorted(([one], [other]) => one - other))
}

function between(seen: Set<number>, from: number, to: number): boolean {
  for (let step = from; step < to; step += 1) if (seen.has(step)) return true
  return false
}

function stepOf(at: string, step_ms: number): number {
  return Math.floor(Date.parse(at) / step_ms)
}

function time(text: string | null): string | null {
  return text !== null && !Number.isNaN(Date.parse(text)) ? seconds(new Date(text)) : null
}

function seconds(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`
}

export const KINDS: LatencyKind[] = ['distribution', 'end-to-end', 'queueing', 'action']
const MOST_MINUTES = 365 * 1440
