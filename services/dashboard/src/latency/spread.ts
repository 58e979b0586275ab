/** The distribution of latencies as bars: ten steps to a decade, each line beside the others. */
import { decade, latency } from '../format'
import { productsWords, type LineCurve } from './curves'

export interface SpreadBar {
  key: string
  place: number
  x: number
  y: number
  width: number
  height: number
  words: string
}

export interface SpreadPlot {
  bars: SpreadBar[]
  decades: { x: number; text: string }[]
  shares: { y: number; text: string }[]
  objectives: { x: number; words: string }[]
  /** The ends of the drawing inside of its margins. */
  box: { left: number; right: number; top: number; bottom: number }
}

/** Null without a product above zero. Shares are of all products of the line. */
export function spreadOf(curves: readonly LineCurve[], width: number, height: number): SpreadPlot | null {
  const steps = curves.flatMap((curve) => curve.spread.bins.map((bin) => stepOf(bin.from_ms)))
  if (steps.length === 0) return null
  const objectives = distinct(curves.flatMap((curve) => curve.objective_ms ?? []))
  const ends = [...steps, ...steps.map((step) => step + 1), ...objectives.map((ms) => Math.log10(ms) * STEPS)]
  const first = Math.floor(Math.min(...ends) / STEPS) * STEPS
  const last = Math.max(Math.ceil(Math.max(...ends) / STEPS) * STEPS, first + STEPS)
  const top = topShare(curves)
  const box = { left: 40, right: width - 12, top: 20, bottom: height - 40 }
  const x = (step: number) => box.left + ((step - first) / (last - first)) * (box.right - box.left)
  const y = (share: number) => box.bottom - (share / top) * (box.bottom - box.top)
  return {
    bars: curves.flatMap((curve, at) => barsOf(curve, { at, of: curves.length, x, y })),
    decades: range(first, last, STEPS).map((step) => ({ x: x(step), text: decade(10 ** (step / STEPS)) })),
    shares: range(0, 4, 1).map((at) => ({ y: y((top * at) / 4), text: `${round((top * at * 100) / 4)} %` })),
    objectives: objectives.map((ms) => ({ x: x(Math.log10(ms) * STEPS), words: `objective ${latency(ms)}` })),
    box,
  }
}

/** The rows of the table of the same: a bin, and the products of each line in it. */
export function spreadRows(curves: readonly LineCurve[]): { title: string; counts: number[] }[] {
  const steps = distinct(curves.flatMap((curve) => curve.spread.bins.map((bin) => stepOf(bin.from_ms)))).toSorted(
    (one, other) => one - other,
  )
  return steps.map((step) => {
    const found = curves.map((curve) => curve.spread.bins.find((bin) => stepOf(bin.from_ms) === step))
    const bin = found.find((one) => one !== undefined)
    return {
      title: bin === undefined ? '' : `${latency(bin.from_ms)} to ${latency(bin.to_ms)}`,
      counts: found.map((one) => one?.count ?? 0),
    }
  })
}

/** The words of the drawing: where most products of each line are, and how many missed the objective. */
export function spreadWords(curves: readonly LineCurve[]): string {
  return curves
    .map((curve) => {
      const most = curve.spread.bins.reduce((one, other) => (other.count > one.count ? other : one), NO_BIN)
      if (most.count === 0) return `${curve.name}: no products`
      const all = productsWords(curve.spread.figures.count)
      const where = `most of ${all} from ${latency(most.from_ms)} to ${latency(most.to_ms)}`
      const over = curve.spread.over_objective
      return `${curve.name}: ${where}${over === null ? '' : `, ${over} above the objective`}`
    })
    .join('; ')
}

interface Place {
  at: number
  of: number
  x: (step: number) => number
  y: (share: number) => number
}

function barsOf(curve: LineCurve, { at, of, x, y }: Place): SpreadBar[] {
  const all = Math.max(curve.spread.figures.count, 1)
  return curve.spread.bins.map((bin) => {
    const step = stepOf(bin.from_ms)
    const wide = ((x(step + 1) - x(step)) * FILLED) / of
    const top = y(bin.count / all)
    return {
      key: `${curve.key} ${step}`,
      place: curve.place,
      x: x(step) + ((x(step + 1) - x(step)) * (1 - FILLED)) / 2 + at * wide,
      y: top,
      width: wide,
      // A single product among many is still seen.
      height: Math.max(y(0) - top, LEAST_PX),
      words: `${curve.name}: ${productsWords(bin.count)} from ${latency(bin.from_ms)} to ${latency(bin.to_ms)}`,
    }
  })
}

function topShare(curves: readonly LineCurve[]): number {
  const shares = curves.flatMap((curve) => {
    return curve.spread.bins.map((bin) => bin.count / Math.max(curve.spread.figures.count, 1))
  })
  const highest = Math.max(...shares)
  return TOPS.find((top) => top >= highest) ?? 1
}

function stepOf(from_ms: number): number {
  return Math.round(Math.log10(from_ms) * STEPS)
}

function distinct(values: number[]): number[] {
  return [...new Set(values)]
}

function range(first: number, last: number, by: number): number[] {
  return Array.from({ length: Math.floor((last - first) / by) + 1 }, (_, at) => first + at * by)
}

function round(value: number): number {
  return Number(value.toFixed(1))
}

const STEPS = 10
const FILLED = 0.8
const LEAST_PX = 1
const TOPS = [0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 0.8, 1]
const NO_BIN = { from_ms: 0, to_ms: 0, count: 0 }
