/** The labels right of the drawing: at the ends of lines and of objectives, moved apart where they would overlap. */
import { latency } from '../../format'
import { curvesOn, objectivesOf, valuesOf, type LineCurve, type Plot } from '../curves'
import { lookOfPlace, type Token } from './looks'
import { NARROW_PX, yOf, type Plane } from './plane'

export interface EndLabel {
  text: string
  /** The middle of the label in pixels. */
  y: number
  token: Token
  isStrong: boolean
}

/** None on a narrow drawing, which has no room for them. */
export function endLabels(plot: Plot, plane: Plane): EndLabel[] {
  if (plane.width < NARROW_PX) return []
  const wanted = [...curvesOn(plot).flatMap((curve) => ofLine(plot, plane, curve)), ...ofObjectives(plot, plane)]
  const ys = apart(
    wanted.map((label) => label.y),
    { gap: LINE_PX, from: plane.top, to: plane.height - plane.bottom },
  )
  return wanted.map((label, at) => ({ ...label, y: ys[at] ?? label.y }))
}

interface Bounds {
  gap: number
  from: number
  to: number
}

/** Places that keep the gap: the order of the wanted ones, and as near to them as a pass down and one up bring. */
export function apart(wanted: readonly number[], { gap, from, to }: Bounds): number[] {
  const order = wanted.map((y, at) => ({ y, at })).toSorted((one, other) => one.y - other.y || one.at - other.at)
  let least = from
  for (const one of order) {
    one.y = Math.max(one.y, least)
    least = one.y + gap
  }
  let most = to
  for (const one of order.toReversed()) {
    one.y = Math.min(one.y, most)
    most = one.y - gap
  }
  return order.toSorted((one, other) => one.at - other.at).map((one) => one.y)
}

function ofLine(plot: Plot, plane: Plane, curve: LineCurve): EndLabel[] {
  const { token } = lookOfPlace(curve.place)
  const now = valuesOf(curve.points, plot.figure, plane.scale)
  const before = plot.hasBefore ? valuesOf(curve.before, plot.figure, plane.scale) : []
  return [
    ...labelOf(plane, now, (value) => ({ text: named(curve.name, value), token, isStrong: true })),
    ...labelOf(plane, before, (value) => ({ text: named(curve.name, `week before ${value}`), token, isStrong: false })),
  ]
}

/** At the last value; a line that ended earlier has no figure, which would be taken for one of now. */
function labelOf(
  plane: Plane,
  values: readonly (number | null)[],
  words: (value: string) => Omit<EndLabel, 'y'>,
): EndLabel[] {
  const last = values.findLastIndex((value) => value !== null)
  const y = yOf(plane, values[last] ?? null)
  if (y === null) return []
  const isRecent = last >= values.length - RECENT_STEPS
  return [{ ...words(isRecent ? latency(values[last]) : ''), y }]
}

function ofObjectives(plot: Plot, plane: Plane): EndLabel[] {
  return objectivesOf(plot).flatMap(({ ms, words }) => {
    const y = yOf(plane, ms)
    return y === null ? [] : [{ text: cut(words, LONGEST), y, token: '--ink' as const, isStrong: true }]
  })
}

/** The name gives way, the figure does not. */
function named(name: string, words: string): string {
  const rest = words.trim()
  return `${cut(name, LONGEST - rest.length - 1)} ${rest}`.trim()
}

function cut(text: string, longest: number): string {
  return text.length > longest ? `${text.slice(0, longest - 1)}…` : text
}

const LINE_PX = 15
/** Characters of a label that fit into the margin. */
const LONGEST = 26
/** The newest step is often not complete yet. */
const RECENT_STEPS = 2
