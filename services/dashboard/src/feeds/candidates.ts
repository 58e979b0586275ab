/** The transports of a plan as points: p99 against egress, both logarithmic. */
import { latency, megabits } from '../format'
import type { Candidate, Feed } from '../overview'

export interface Point {
  /** A transport, or `measured` for the present latency. */
  key: string
  kind: 'chosen' | 'possible' | 'impossible' | 'measured'
  x: number
  y: number
  label: string
  /** Where the label's text begins or ends, and its base line. */
  label_x: number
  label_y: number
  isLabelLeft: boolean
}

export interface AxisTick {
  at: number
  label: string
}

export interface CandidatesDrawn {
  points: Point[]
  /** Of the egress, and of the latency. */
  across: AxisTick[]
  up: AxisTick[]
  /** The height of the objective. */
  objective_y: number | null
}

export const WIDTH = 400
export const HEIGHT = 236
/** The plot's edges. */
export const PLOT = { left: 52, right: WIDTH - 4, top: 6, bottom: HEIGHT - 22 }

/** Null if no candidate has both figures: there is nothing to compare. */
export function candidatesDrawn(feed: Feed): CandidatesDrawn | null {
  const candidates = feed.plan?.candidates ?? []
  const spots = spotsOf(feed, candidates)
  if (spots.length === 0) return null
  const across = scaleOf(spots.map((one) => one.egress_bps), PLOT.left, PLOT.right)
  const heights = [...spots.map((one) => one.p99_ms), ...(feed.objective_ms > 0 ? [feed.objective_ms] : [])]
  const up = scaleOf(heights, PLOT.bottom, PLOT.top)
  const placed = spots.map((one) => ({ ...one, x: across.at(one.egress_bps), y: up.at(one.p99_ms) }))
  return {
    points: labelled(placed),
    across: across.decades.map((value) => ({ at: across.at(value), label: rateOf(value) })),
    up: up.decades.map((value) => ({ at: up.at(value), label: latency(value).replace(/\.0+(?= )/, '') })),
    objective_y: feed.objective_ms > 0 ? up.at(feed.objective_ms) : null,
  }
}

interface Spot {
  key: string
  kind: Point['kind']
  egress_bps: number
  p99_ms: number
  label: string
}

function spotsOf(feed: Feed, candidates: readonly Candidate[]): Spot[] {
  const chosen = feed.plan?.transport
  const spots: Spot[] = candidates.filter(isPlaced).map((one) => ({
    key: one.transport,
    kind: one.transport === chosen ? 'chosen' : one.feasible ? 'possible' : 'impossible',
    egress_bps: one.egress_bps,
    p99_ms: one.predicted_p99_ms,
    label: `${one.transport} ${latency(one.predicted_p99_ms)}`,
  }))
  const own = spots.find((one) => one.kind === 'chosen')
  const p99 = feed.latency.distribution_ms?.p99 ?? null
  if (own === undefined || p99 === null || p99 <= 0) return spots
  return [...spots, { ...own, key: 'measured', kind: 'measured', p99_ms: p99, label: `measured ${latency(p99)}` }]
}

function isPlaced(one: Candidate): one is Candidate & { egress_bps: number; predicted_p99_ms: number } {
  return (one.egress_bps ?? 0) > 0 && (one.predicted_p99_ms ?? 0) > 0
}

interface Scale {
  /** The powers of ten on it, both ends included. */
  decades: number[]
  at: (value: number) => number
}

/** Whole decades around the values: at least one. */
function scaleOf(values: readonly number[], begin: number, end: number): Scale {
  const first = Math.floor(Math.log10(Math.min(...values)))
  const last = Math.max(Math.ceil(Math.log10(Math.max(...values))), first + 1)
  const decades = Array.from({ length: last - first + 1 }, (_, step) => 10 ** (first + step))
  const at = (value: number) => {
    const share = (Math.log10(value) - first) / (last - first)
    return Math.round((begin + share * (end - begin)) * 10) / 10
  }
  return { decades, at }
}

interface Box {
  left: number
  right: number
  /** The base line of its text. */
  y: number
}

/** Labels stand beside their points, away from the nearer edge, as near as other labels and points allow. */
function labelled(spots: readonly (Spot & { x: number; y: number })[]): Point[] {
  const marks = spots.map(({ x, y }) => ({ left: x - MARK, right: x + MARK, y: y + BASE }))
  const taken: Box[] = []
  return spots.map(({ key, kind, x, y, label }, at) => {
    const isLabelLeft = x > (PLOT.left + PLOT.right) / 2
    const label_x = isLabelLeft ? x - GAP : x + GAP
    const length = label.length * LETTER
    const [left, right] = isLabelLeft ? [label_x - length, label_x] : [label_x, label_x + length]
    const others = [...taken, ...marks.filter((_, number) => number !== at)]
    const label_y = freeHeight({ left, right, y: y + BASE }, others)
    taken.push({ left, right, y: label_y })
    return { key, kind, x, y, label, label_x, label_y, isLabelLeft }
  })
}

/** The base line nearest to a label's own at which it covers nothing. */
function freeHeight(label: Box, others: readonly Box[]): number {
  const beside = others.filter((one) => one.left < label.right && label.left < one.right)
  const isFree = (y: number) =>
    y > PLOT.top + LINE && y < PLOT.bottom && beside.every((one) => Math.abs(one.y - y) >= LINE)
  return SHIFTS.map((shift) => label.y + shift).find(isFree) ?? label.y
}

/** A decade of the egress: `10 Mb/s`, `1 Gb/s`. */
function rateOf(bps: number): string {
  const [factor, unit] = UNITS.find(([least]) => bps >= least) ?? [1, 'b/s']
  return `${Math.round(bps / factor)} ${unit}`
}

/** The egress of a candidate in a table. */
export function egressOf(one: Candidate): string {
  return one.egress_bps === null ? '–' : `${megabits(one.egress_bps)} Mb/s`
}

const UNITS: [number, string][] = [
  [1e9, 'Gb/s'],
  [1e6, 'Mb/s'],
  [1e3, 'kb/s'],
]
const GAP = 9
const BASE = 4
const LINE = 14
/** Half of the width of a point. */
const MARK = 7
/** Tried in this order: down and up by steps of a few pixels. */
const SHIFTS = [0, ...Array.from({ length: 12 }, (_, step) => 7 * (step + 1)).flatMap((shift) => [shift, -shift])]
/** The mean width of a letter of 12 px. */
const LETTER = 6.4
