/** Geometry of time-sequence plots: acknowledged bytes of a connection over the time, what went again, and stalls. */
import type { Stall, TracedConnection, TracedSite, Verdict } from './api'
import { bytes, percent, whole } from './format'
import { call } from './hub'

export type { TracedSite } from './api'

/** One plot, in the units of its drawing. */
export interface Plot {
  /** The corners of the curve; empty: no samples. */
  curve: Place[]
  resent: (Place & { segments: number })[]
  stalls: Span[]
  across: { x: number; text: string }[]
  up: { y: number; text: string }[]
  /** The beginning of the time axis, in UTC. */
  begun: string
}

export interface Place {
  x: number
  y: number
}

/** A stall: `row` keeps the labels of neighbours apart. */
export interface Span {
  x: number
  width: number
  row: number
  seconds: number
  sentence: string
}

/** The variables that a plot shows. */
export const VARIABLES = ['bytes_acked', 'total_retrans']

export const SIZE = { width: 640, height: 240, left: 70, right: 630, top: 12, bottom: 214 }

/** Asks for the connections of a site in the last so many seconds. */
export function askTracer(site: string, last_s: number, signal: AbortSignal): Promise<TracedSite> {
  const query = new URLSearchParams({ last_s: String(last_s), points: '600' })
  for (const name of VARIABLES) query.append('variable', name)
  return call<TracedSite>('GET', `sites/${encodeURIComponent(site)}/tracer?${query}`, undefined, signal)
}

/** The plot of a connection; `null` if there is nothing to draw. */
export function plotOf(connection: TracedConnection, variables: string[]): Plot | null {
  const looks = looksOf(connection.samples, variables)
  const ends = (stall: Stall) => ({ stall, from: Date.parse(stall.begun_at), to: Date.parse(stall.until) })
  const spans = connection.stalls.map(ends)
  const moments = [...looks.map((look) => look.at), ...spans.flatMap(({ from, to }) => [from, to])]
  if (moments.length === 0) return null
  const begin = moments.reduce((one, other) => Math.min(one, other))
  const span = Math.max(moments.reduce((one, other) => Math.max(one, other)) - begin, 1)
  const most = Math.max(looks.at(-1)?.acked ?? 0, 1)
  const unit = span > MINUTES_FROM_MS ? { ms: 60_000, name: 'min' } : { ms: 1000, name: 's' }
  const x = (at: number) => SIZE.left + ((at - begin) / span) * (SIZE.right - SIZE.left)
  const y = (acked: number) => SIZE.bottom - (acked / most) * (SIZE.bottom - SIZE.top)
  const place = (look: Look) => ({ x: x(look.at), y: y(look.acked) })
  return {
    curve: looks.map(place),
    resent: looks.filter((look) => look.resent > 0).map((look) => ({ ...place(look), segments: look.resent })),
    stalls: spans.map(({ stall, from, to }, number) => ({
      x: x(from),
      width: Math.max(x(to) - x(from), 0),
      row: number % LABEL_ROWS,
      seconds: seconds(stall),
      sentence: sentenceOf(stall),
    })),
    across: ticks(span / unit.ms).map((tick) => ({ x: x(begin + tick * unit.ms), text: `${tick} ${unit.name}` })),
    up: ticks(most).map((tick) => ({ y: y(tick), text: bytes(tick) })),
    begun: new Date(begin).toISOString().slice(0, 19).replace('T', ' '),
  }
}

/** The verdict in two sentences: the leading limit with its remedy, and the shares of the time. */
export function captionOf(verdict: Verdict | null): string[] {
  if (verdict === null) return ['Too few samples to judge.']
  const shares = verdict.shares.filter((one) => one.share >= LEAST_SHOWN)
  const listed = shares.map((one) => `${one.limit} ${percent(one.share)}`).join(', ')
  return [`${verdict.leading}: ${verdict.sentence}`, `Of ${verdict.seconds.toFixed(1)} s: ${listed}.`]
}

/** The time for which a stall lasted, so far. */
export function seconds(stall: Stall): number {
  return (Date.parse(stall.until) - Date.parse(stall.begun_at)) / 1000
}

function sentenceOf(stall: Stall): string {
  const begun = new Date(stall.begun_at).toISOString().slice(11, 23)
  const lasts = stall.ended ? '' : ', and it may last on'
  return (
    `Stall of ${seconds(stall).toFixed(1)} s from ${begun}: nothing was acknowledged, ` +
    `${whole(stall.waiting_bytes)} bytes waited${lasts}`
  )
}

/** A sample: milliseconds since 1970, bytes since the first sample, segments that went again since the one before. */
interface Look {
  at: number
  acked: number
  resent: number
}

function looksOf(samples: TracedConnection['samples'], variables: string[]): Look[] {
  const [acked_at, resent_at] = VARIABLES.map((name) => variables.indexOf(name) + 1)
  const [acked, resent] = [growth(acked_at), growth(resent_at)]
  let sum = 0
  return samples.flatMap((sample) => {
    const at = sample[0] ?? null
    if (at === null) return []
    sum += acked(sample)
    return [{ at: at / 1000, acked: sum, resent: resent(sample) }]
  })
}

/** How a counter grew since its last known value; a connection with the same ends began it anew. */
function growth(column = 0): (sample: (number | null)[]) => number {
  let before: number | null = null
  return (sample) => {
    const value = column > 0 ? (sample[column] ?? null) : null
    const grown = value === null || before === null ? 0 : Math.max(value - before, 0)
    before = value ?? before
    return grown
  }
}

/** Round values from 0 to `high`, at most seven. */
function ticks(high: number): number[] {
  const power = 10 ** Math.floor(Math.log10(high / 4))
  const step = power * (STEPS.find((one) => high / (power * one) <= MOST_TICKS) ?? 10)
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, number) => Number((number * step).toPrecision(12)))
}

const MINUTES_FROM_MS = 600_000
const STEPS = [1, 2, 5, 10]
const MOST_TICKS = 6
const LABEL_ROWS = 3
const LEAST_SHOWN = 0.005
