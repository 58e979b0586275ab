/** The chart as options of ECharts: pure, so that the page, the PNG and the SVG draw the same. */
import { decade, latency } from '../../format'
import { ticks } from '../../chart'
import {
  curvesOn,
  extentOf,
  isFlagged,
  momentOf,
  objectivesOf,
  valuesOf,
  zoneWord,
  type LineCurve,
  type Plot,
} from '../curves'
import { tickWords } from './days'
import { FIGURES, type Scale, type Zone } from '../linesview'
import { endLabels } from './labels'
import { LINE_GLYPHS, lookOfPlace, type Palette } from './looks'
import { marginsOf, NARROW_PX, type Plane } from './plane'

export interface Drawn {
  plot: Plot
  scale: Scale
  zone: Zone
  palette: Palette
  width: number
  height: number
  /** Times in which products came and a line has no report; the names of the lines. */
  silent: Silence[]
  /** Of a file: a heading, and a legend below it. */
  title?: string
}

export interface Silence {
  from_ms: number
  to_ms: number
  name: string
}

type Pair = [number, number | null]

/** Everything that the chart shows; plain data. */
export function optionsOf(drawn: Drawn) {
  const { plot, scale, zone, palette, title } = drawn
  const plane = planeOf(drawn)
  const curves = curvesOn(plot)
  return {
    animation: false,
    useUTC: zone === 'utc',
    backgroundColor: title === undefined ? 'transparent' : palette['--surface'],
    textStyle: { fontFamily: FONT, fontSize: 12, color: palette['--ink-2'] },
    title: [...(title === undefined ? [] : headOf(drawn, title)), ...labelsOf(drawn, plane)],
    grid: { left: plane.left, right: plane.right, top: plane.top, bottom: plane.bottom },
    xAxis: timeAxis(drawn),
    yAxis: valueAxis(plot, scale, palette),
    series: [
      ...curves.flatMap((curve) => [
        ...(plot.hasBefore ? [beforeOf(drawn, curve)] : []),
        lineOf(drawn, curve),
        ...(scale === 'log' ? [flagsOf(drawn, curve)] : []),
      ]),
      marksOf(drawn),
    ],
  }
}

/** The places of the drawing, below the heading of a file. */
function planeOf({ plot, scale, width, height, title }: Drawn): Plane {
  const margins = marginsOf(width)
  const top = margins.top + (title === undefined ? 0 : headHeight(plot))
  return { width, height, ...margins, top, from_ms: plot.from_ms, to_ms: plot.to_ms, ...extentOf(plot, scale), scale }
}

/** As titles: labels of the lines themselves would overlap. */
function labelsOf({ plot, palette }: Drawn, plane: Plane) {
  return endLabels(plot, plane).map(({ text, y, token, isStrong }) => ({
    text,
    left: plane.width - plane.right + LABEL_GAP_PX,
    top: y - LABEL_PX / 2,
    padding: 0,
    textStyle: {
      lineHeight: LABEL_PX,
      fontSize: 12,
      fontWeight: isStrong ? 600 : 400,
      fontFamily: FONT,
      color: palette[token],
    },
  }))
}

/** The height of a file's heading with its legend. */
export function headHeight(plot: Plot): number {
  return HEAD_PX + LEGEND_LINE_PX * curvesOn(plot).length
}

function lineOf({ plot, scale, palette }: Drawn, curve: LineCurve) {
  const { token, path } = lookOfPlace(curve.place)
  const values = valuesOf(curve.points, plot.figure, scale)
  const last = values.findLastIndex((value) => value !== null)
  return {
    name: curve.name,
    type: 'line' as const,
    symbol: 'none',
    data: values.map((value, step) => {
      // The mark of the line is at its end.
      return pointOf(plot, step, value, isLonely(values, step) || step === last, `path://${path}`)
    }),
    lineStyle: { width: 2, color: palette[token] },
    itemStyle: { color: palette[token] },
    z: 4,
  }
}

function beforeOf({ plot, scale, palette }: Drawn, curve: LineCurve) {
  const { token } = lookOfPlace(curve.place)
  const values = valuesOf(curve.before, plot.figure, scale)
  return {
    name: `${curve.name}, week before`,
    type: 'line' as const,
    symbol: 'none',
    data: values.map((value, step) => pointOf(plot, step, value, isLonely(values, step), 'circle')),
    lineStyle: { width: 1.5, color: palette[token], type: [2, 3] },
    itemStyle: { color: palette[token] },
    z: 3,
  }
}

/** Steps with a value at or below zero, on the lower edge of a log axis. */
function flagsOf({ plot, scale, palette }: Drawn, curve: LineCurve) {
  const { floor_ms } = extentOf(plot, scale)
  return {
    name: `${curve.name}, clock`,
    type: 'line' as const,
    symbol: 'triangle',
    symbolRotate: 180,
    symbolSize: 9,
    showAllSymbol: true,
    data: curve.points.map((point, step): Pair => {
      return [plot.times_ms[step] ?? 0, isFlagged(point, plot.figure) ? floor_ms : null]
    }),
    lineStyle: { width: 0 },
    itemStyle: { color: palette['--critical'] },
    z: 5,
  }
}

/** Objectives as dashed lines with their labels, and times without a report as grounds. */
function marksOf({ plot, palette, silent, width }: Drawn) {
  return {
    name: 'marks',
    type: 'line' as const,
    data: [] as Pair[],
    markLine: {
      silent: true,
      symbol: 'none',
      lineStyle: { type: [5, 4], width: 1.5, color: palette['--ink'] },
      data: objectivesOf(plot).map(({ ms, words }) => ({
        yAxis: ms,
        // With room right of the drawing it is one of the labels there.
        label: {
          show: width < NARROW_PX,
          formatter: words,
          position: 'insideEndTop' as const,
          color: palette['--ink'],
          fontWeight: 600,
        },
      })),
    },
    markArea: {
      silent: true,
      itemStyle: { color: palette['--sunken'], borderColor: palette['--line-2'], borderWidth: 1, borderType: 'dashed' },
      label: { position: 'insideBottom' as const, color: palette['--ink-2'] },
      data: silent.map(({ from_ms, to_ms, name }): [{ xAxis: number; name: string }, { xAxis: number }] => [
        { xAxis: Math.max(from_ms, plot.from_ms), name },
        { xAxis: Math.min(to_ms, plot.to_ms) },
      ]),
    },
    z: 1,
  }
}

function timeAxis({ plot, zone, palette, width }: Drawn) {
  return {
    type: 'time' as const,
    min: plot.from_ms,
    max: plot.to_ms,
    splitNumber: Math.max(Math.floor(width / PX_PER_TICK), 2),
    axisLine: { lineStyle: { color: palette['--line-2'] } },
    axisTick: { show: false },
    splitLine: { show: true, lineStyle: { color: palette['--line'] } },
    axisLabel: {
      color: palette['--ink-2'],
      hideOverlap: true,
      showMinLabel: false,
      formatter: (at_ms: number) => tickOf(at_ms, zone),
      rich: { day: { fontWeight: 600, fontSize: 12, color: palette['--ink'] } },
    },
  }
}

function valueAxis(plot: Plot, scale: Scale, palette: Palette) {
  const { floor_ms, ceiling_ms } = extentOf(plot, scale)
  const isLog = scale === 'log'
  return {
    type: isLog ? ('log' as const) : ('value' as const),
    min: floor_ms,
    max: ceiling_ms,
    // On a log axis a number of decades.
    ...(isLog ? { splitNumber: ticks(floor_ms, ceiling_ms).length - 1 } : {}),
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { show: true, lineStyle: { color: palette['--line'] } },
    minorTick: { show: false },
    minorSplitLine: { show: isLog, lineStyle: { color: palette['--sunken'] } },
    axisLabel: {
      color: palette['--ink-2'],
      formatter: (ms: number) => (isLog ? decade(Number(ms.toPrecision(6))) : ms === 0 ? '0' : latency(ms)),
    },
  }
}

/** The heading of a file, and a line for each curve with its figures. */
function headOf({ plot, zone, palette }: Drawn, title: string) {
  const figure = FIGURES.find((one) => one.figure === plot.figure)?.title ?? plot.figure
  const range = `${momentOf(plot.from_ms, zone)} to ${momentOf(plot.to_ms, zone)} ${zoneWord(zone)}, ${figure}`
  const rows = curvesOn(plot).map((curve, row) => ({
    text: `${LINE_GLYPHS[curve.place % LINE_GLYPHS.length]} ${curve.name}   ${figuresOf(curve)}`,
    left: 16,
    top: HEAD_PX - 4 + row * LEGEND_LINE_PX,
    textStyle: { fontSize: 12, fontWeight: 500, fontFamily: FONT, color: palette[lookOfPlace(curve.place).token] },
  }))
  return [
    {
      text: title,
      subtext: plot.hasBefore ? `${range}; dotted: the same range 7 days before` : range,
      left: 16,
      top: 8,
      itemGap: 0,
      textStyle: { lineHeight: 24, fontSize: 15, fontWeight: 600, fontFamily: FONT, color: palette['--ink'] },
      subtextStyle: { lineHeight: 18, fontSize: 12, fontFamily: FONT, color: palette['--ink-2'] },
    },
    ...rows,
  ]
}

function figuresOf({ spread: { figures } }: LineCurve): string {
  const shown = (['p50', 'p95', 'p99'] as const).map((name) => `${name} ${latency(figures[name])}`)
  return [...shown, `worst ${latency(figures.max)}`].join('   ')
}

/** The label of a moment: at midnight the day, bold. */
export function tickOf(at_ms: number, zone: Zone): string {
  const { text, isDay } = tickWords(at_ms, zone)
  return isDay ? `{day|${text}}` : text
}

/** A value without neighbours is a point: no line would show it. */
function isLonely(values: readonly (number | null)[], step: number): boolean {
  return values[step] !== null && (values[step - 1] ?? null) === null && (values[step + 1] ?? null) === null
}

function pointOf(plot: Plot, step: number, value: number | null, isMarked: boolean, mark: string) {
  const pair: Pair = [plot.times_ms[step] ?? 0, value]
  if (!isMarked) return pair
  return { value: pair, symbol: mark, symbolSize: 8 }
}

const FONT = "'Inter', system-ui, sans-serif"
const HEAD_PX = 60
const LABEL_PX = 14
const LABEL_GAP_PX = 8
const LEGEND_LINE_PX = 18
const PX_PER_TICK = 120
