/** The answers of the hub as curves over the chosen range, with their figures and the words for them. */
import type { Histogram, LatencyHistory, LatencyPoint } from '../api'
import { decades } from '../chart'
import { doubted, latency, measured, whole } from '../format'
import { pointsOf, stepsOf, worst } from '../latencyview'
import {
  FIGURES,
  keyOf,
  nameOf,
  titleOfLines,
  WEEK_MS,
  type Figure,
  type Line,
  type LinesView,
  type Scale,
  type Zone,
} from './linesview'

/** The answers of the hub for a line. */
export interface Answered {
  line: Line
  history: LatencyHistory
  spread: Histogram
  /** Null where it was not asked for. */
  before: LatencyHistory | null
}

export interface LineCurve {
  key: string
  line: Line
  name: string
  /** The place among the lines, which gives it colour and mark. */
  place: number
  isOff: boolean
  /** One for each step of the plot; null is a gap. */
  points: (LatencyPoint | null)[]
  before: (LatencyPoint | null)[]
  spread: Histogram
  objective_ms: number | null
  worst: LatencyPoint | null
}

/** The range as it was chosen, with everything that is drawn over it. */
export interface Plot {
  from_ms: number
  to_ms: number
  step_ms: number
  times_ms: number[]
  figure: Figure
  curves: LineCurve[]
  hasBefore: boolean
}

/** Null until a line has an answer: then there is no range of the hub's clock yet. */
export function plotOf(view: LinesView, answers: readonly Answered[]): Plot | null {
  const first = answers[0]?.history
  if (first === undefined) return null
  const steps_s = stepsOf(first)
  return {
    from_ms: Date.parse(first.from),
    to_ms: Date.parse(first.to),
    step_ms: first.step_minutes * 60_000,
    times_ms: steps_s.map((at_s) => at_s * 1000),
    figure: view.figure,
    curves: answers.map((one) => curveOf(view, one, steps_s)),
    hasBefore: view.weekBefore,
  }
}

/** The curves that the legend has not switched off. */
export function curvesOn(plot: Plot): LineCurve[] {
  return plot.curves.filter((curve) => !curve.isOff)
}

/** The values of the plot's figure; one at or below zero is on a log axis no value, but a flag. */
export function valuesOf(points: (LatencyPoint | null)[], figure: Figure, scale: Scale): (number | null)[] {
  return points.map((point) => {
    const value = point?.[figure] ?? null
    return value !== null && value <= 0 && scale === 'log' ? null : value
  })
}

/** Steps whose value has no place on a log axis: a clock is wrong. */
export function isFlagged(point: LatencyPoint | null, figure: Figure): boolean {
  return point !== null && (point.negative > 0 || (point[figure] ?? 1) <= 0)
}

/** The ends of the value axis, so that each visible curve and each objective is inside. */
export function extentOf(plot: Plot, scale: Scale): { floor_ms: number; ceiling_ms: number } {
  const values = curvesOn(plot).flatMap((curve) => [
    ...valuesOf(curve.points, plot.figure, scale),
    ...(plot.hasBefore ? valuesOf(curve.before, plot.figure, scale) : []),
    curve.objective_ms,
  ])
  if (scale === 'log') return decades(values)
  const known = values.filter((value) => value !== null)
  return { floor_ms: Math.min(0, ...known), ceiling_ms: roundUp(Math.max(0, ...known) * 1.05) }
}

/** The different objectives of the visible curves. */
export function objectivesOf(plot: Plot): { ms: number; words: string }[] {
  const known = new Map<number, string[]>()
  for (const curve of curvesOn(plot)) {
    const { objective_ms: ms, name } = curve
    if (ms !== null) known.set(ms, [...(known.get(ms) ?? []), name])
  }
  const isOne = known.size === 1
  return [...known].map(([ms, names]) => ({
    ms,
    words: isOne ? `objective ${latency(ms)}` : `objective ${latency(ms)}: ${names.join(', ')}`,
  }))
}

/** The step that holds a moment; null outside of the range. */
export function stepAt(plot: Plot, at_ms: number): number | null {
  const step = Math.floor((at_ms - (plot.times_ms[0] ?? 0)) / plot.step_ms)
  return step >= 0 && step < plot.times_ms.length ? step : null
}

/** A moment in the words of the zone: `2026-03-14 10:00`; with `short` the time of day alone. */
export function momentOf(at_ms: number, zone: Zone, short = false): string {
  const moment = new Date(zone === 'utc' ? at_ms : at_ms - new Date(at_ms).getTimezoneOffset() * 60_000)
  const text = moment.toISOString()
  return short ? text.slice(11, 16) : text.slice(0, 16).replace('T', ' ')
}

/** The words of a chart for those who don't see it: range, lines and the worst value of each. */
export function plotWords(plot: Plot, zone: Zone): string {
  const figure = FIGURES.find((one) => one.figure === plot.figure)?.title ?? plot.figure
  const range = `${momentOf(plot.from_ms, zone)} to ${momentOf(plot.to_ms, zone)} ${zoneWord(zone)}`
  const lines = curvesOn(plot).map((curve) => `${curve.name}: ${worstWords(curve, zone)}`)
  const before = plot.hasBefore ? ', with the week before' : ''
  const title = titleOfLines(plot.curves.map((curve) => curve.line))
  return `${title} per ${stepWord(plot.step_ms)}, ${figure}${before}, ${range}. ${lines.join('; ')}.`
}

/** `worst 4.41 s at 2026-03-14 10:02`. */
export function worstWords(curve: LineCurve, zone: Zone): string {
  if (curve.worst === null || curve.worst.max === null) return 'no measurement'
  return `worst ${latency(curve.worst.max)} at ${momentOf(Date.parse(curve.worst.at), zone)}`
}

/** The words of one step for the crosshair: `2026-03-14 10:00 UTC. unl.edu 0.98 s, a week before 1.00 s`. */
export function stepWords(plot: Plot, step: number, zone: Zone): string {
  const lines = curvesOn(plot).map((curve) => {
    const before = plot.hasBefore ? `, a week before ${valueWords(curve.before[step], plot.figure)}` : ''
    return `${curve.name} ${valueWords(curve.points[step], plot.figure)}${before}`
  })
  return `${momentOf(plot.times_ms[step] ?? 0, zone)} ${zoneWord(zone)}. ${lines.join('; ')}`
}

/** A value with the doubt of its clocks, or that there is none. */
export function valueWords(point: LatencyPoint | null | undefined, figure: Figure): string {
  return point === null || point === undefined ? 'no report' : doubted(point[figure], point.bound)
}

/** A step's length in words. */
export function stepWord(step_ms: number): string {
  const minutes = step_ms / 60_000
  return minutes >= 1440 ? 'day' : minutes >= 60 ? 'hour' : minutes > 1 ? `${minutes} minutes` : 'minute'
}

export function zoneWord(zone: Zone): string {
  return zone === 'utc' ? 'UTC' : 'local time'
}

/** The rows of the table beside the chart, oldest first; steps in which no line has a value are left out. */
export function tableOf(plot: Plot, zone: Zone): { at: string; cells: string[] }[] {
  const curves = curvesOn(plot)
  return plot.times_ms.flatMap((at_ms, step) => {
    if (curves.every((curve) => (curve.points[step] ?? null) === null)) return []
    const cells = curves.map((curve) => {
      const point = curve.points[step] ?? null
      return point === null ? 'no report' : measured(point[plot.figure], point.bound)
    })
    return [{ at: momentOf(at_ms, zone), cells }]
  })
}

/** The view as comma-separated values: a row for each step and line, empty where nothing was reported. */
export function csvOf(plot: Plot): string {
  const head = ['at', 'feed', 'site', 'series', ...FIGURES.map((one) => `${one.figure}_ms`), 'products', 'objective_ms']
  const rows = curvesOn(plot).flatMap((curve) => [
    ...rowsOf(plot, curve, curve.points, 0),
    ...(plot.hasBefore ? rowsOf(plot, curve, curve.before, WEEK_MS) : []),
  ])
  return [head, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('')
}

/** A name for files of the view: `latency-NGRID-unl.edu-20260314T1000Z`. */
export function fileNameOf(plot: Plot): string {
  const lines = plot.curves.map((curve) => `${curve.line.feed}-${curve.line.site ?? 'all'}`)
  const names = lines.length > 2 ? `${lines[0]}-and-${lines.length - 1}-more` : lines.join('-')
  const end = new Date(plot.to_ms).toISOString().slice(0, 16).replaceAll(/[-:]/g, '')
  return `latency-${names.replaceAll(/[^\w.-]+/g, '_')}-${end}Z`
}

/** How many products the figures of a curve are from, for the note on a p99 of few. */
export function isFew(curve: LineCurve): boolean {
  return curve.spread.figures.count > 0 && curve.spread.figures.count < FEW_PRODUCTS
}

function curveOf(view: LinesView, answered: Answered, steps_s: number[]): LineCurve {
  const { line, history, spread, before } = answered
  const key = keyOf(line)
  const shifted = before === null ? null : { ...before, points: before.points.map(aWeekLater) }
  return {
    key,
    line,
    name: nameOf(line, view.lines),
    place: view.lines.findIndex((one) => keyOf(one) === key),
    isOff: view.off.includes(key),
    points: pointsOf(history, steps_s),
    before: shifted === null ? steps_s.map(() => null) : pointsOf(shifted, steps_s),
    spread,
    objective_ms: history.objective_ms,
    worst: worst(history.points),
  }
}

function aWeekLater(point: LatencyPoint): LatencyPoint {
  return { ...point, at: new Date(Date.parse(point.at) + WEEK_MS).toISOString() }
}

function rowsOf(plot: Plot, curve: LineCurve, points: (LatencyPoint | null)[], earlier_ms: number): string[][] {
  return plot.times_ms.map((at_ms, step) => {
    const point = points[step] ?? null
    const figures = FIGURES.map(({ figure }) => (point === null ? '' : String(point[figure] ?? '')))
    return [
      `${new Date(at_ms - earlier_ms).toISOString().slice(0, 19)}Z`,
      curve.line.feed,
      curve.line.site ?? 'all sites',
      earlier_ms === 0 ? 'range' : '7 days before',
      ...figures,
      String(point?.count ?? 0),
      curve.objective_ms === null ? '' : String(curve.objective_ms),
    ]
  })
}

function field(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** The next of 1, 2, 2.5 and 5 times a power of ten. */
function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= value) ?? 10)
}

/** The number of products in words. */
export function productsWords(count: number): string {
  return `${whole(count)} product${count === 1 ? '' : 's'}`
}

/** Below it a p99 by nearest rank is the maximum. */
const FEW_PRODUCTS = 20
