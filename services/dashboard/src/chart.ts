/** Geometry of latencies on a log axis. A value at or below zero has no place on it: it is flagged, never clipped. */
import type { Feed, Quantiles } from './overview'

/** Columns for a chart over time: seconds, the figures, and the axis' floor where a figure was not above zero. */
export interface History {
  times_s: number[]
  p50: (number | null)[]
  p95: (number | null)[]
  p99: (number | null)[]
  max: (number | null)[]
  flagged: (number | null)[]
  floor_ms: number
  ceiling_ms: number
}

export interface Moment {
  at: string
  p50: number | null
  p95: number | null
  p99: number | null
  max: number | null
  negative: number
}

/** The columns of a range: `times_s` are its steps, `moments` the measurements of each; without one it is a gap. */
export function history(times_s: number[], moments: (Moment | null)[]): History {
  const { floor_ms, ceiling_ms } = decades(
    moments.flatMap((one) => (one === null ? [] : [one.p50, one.p95, one.p99, one.max])),
  )
  const column = (name: 'p50' | 'p95' | 'p99' | 'max') =>
    moments.map((one) => (one === null ? null : positive(one[name])))
  const isBad = (one: Moment) => one.negative > 0 || isFlagged(one.p50) || isFlagged(one.p99)
  return {
    times_s,
    p50: column('p50'),
    p95: column('p95'),
    p99: column('p99'),
    max: column('max'),
    flagged: moments.map((one) => (one !== null && isBad(one) ? floor_ms : null)),
    floor_ms,
    ceiling_ms,
  }
}

/** The whole decades that hold all positive values; at least one, and 1 to 1,000 ms when there are none. */
export function decades(values: (number | null)[]): { floor_ms: number; ceiling_ms: number } {
  const above = values.filter((value): value is number => positive(value) !== null)
  if (above.length === 0) return { floor_ms: 1, ceiling_ms: 1000 }
  const floor = Math.floor(log10(Math.min(...above)))
  const ceiling = Math.ceil(log10(Math.max(...above)))
  return { floor_ms: 10 ** floor, ceiling_ms: 10 ** Math.max(ceiling, floor + 1) }
}

/** The powers of ten from floor to ceiling. */
export function ticks(floor_ms: number, ceiling_ms: number): number[] {
  const first = Math.round(log10(floor_ms))
  const count = Math.round(log10(ceiling_ms)) - first + 1
  return Array.from({ length: count }, (_, index) => 10 ** (first + index))
}

/** Where a value lies between floor (0) and ceiling (1); `null` for a value that has no place on a log axis. */
export function position(ms: number | null, floor_ms: number, ceiling_ms: number): number | null {
  const value = positive(ms)
  return value === null ? null : (log10(value) - log10(floor_ms)) / (log10(ceiling_ms) - log10(floor_ms))
}

/** Every latency of the feeds that must fit on their common axis. */
export function latenciesOf(feeds: Feed[]): (number | null)[] {
  return feeds.flatMap((feed) => [...quantiles(feed.latency.distribution_ms), feed.objective_ms])
}

/** Points of a sparkline in a box of the given size, the last value at the right edge; a flat line for silence. */
export function sparkline(values: number[], width: number, height: number): string {
  const largest = Math.max(...values, 0)
  const step = width / Math.max(values.length - 1, 1)
  const y = (value: number) => height - 1 - (largest > 0 ? (value / largest) * (height - 2) : 0)
  return values.map((value, index) => `${round(index * step)},${round(y(value))}`).join(' ')
}

function quantiles(of: Quantiles | null): (number | null)[] {
  return of === null ? [] : [of.p50, of.p95, of.p99, of.max]
}

function positive(value: number | null): number | null {
  return value !== null && value > 0 ? value : null
}

function isFlagged(value: number | null): boolean {
  return value !== null && value <= 0
}

// Math.log10(1000) is exact, Math.log10(0.001) is too; products of decades drift by an ulp and would add a decade.
function log10(value: number): number {
  return round(Math.log10(value), 9)
}

function round(value: number, places = 1): number {
  return Number(value.toFixed(places))
}
