/** The visible part of the world: points of the drawing are enlarged `k` times, then moved by `x` and `y`. */
import { WORLD, type Point } from './projection'

export interface View {
  k: number
  x: number
  y: number
}

export const WHOLE: View = { k: 1, x: 0, y: 0 }
export const MOST_K = 64

export function shownAt(view: View, point: Point): Point {
  return { x: point.x * view.k + view.x, y: point.y * view.k + view.y }
}

export function isInView(view: View, point: Point): boolean {
  const { x, y } = shownAt(view, point)
  return x >= 0 && x <= WORLD.width && y >= 0 && y <= WORLD.height
}

/** Enlarges by a factor and keeps the point `at`, in units of the box, where it is; by default the middle. */
export function zoomed(view: View, factor: number, at: Point = MIDDLE): View {
  const k = clamp(view.k * factor, 1, MOST_K)
  const grown = k / view.k
  return bounded({ k, x: at.x - (at.x - view.x) * grown, y: at.y - (at.y - view.y) * grown })
}

export function panned(view: View, by: Point): View {
  return bounded({ ...view, x: view.x + by.x, y: view.y + by.y })
}

/** The view that shows all these points with a margin; points at one place are shown as near as the map goes. */
export function fitted(points: readonly Point[]): View {
  if (points.length === 0) return WHOLE
  const [left, right] = range(points.map((point) => point.x))
  const [top, bottom] = range(points.map((point) => point.y))
  const wide = (WORLD.width * FILLED) / Math.max(right - left, TINY)
  const high = (WORLD.height * FILLED) / Math.max(bottom - top, TINY)
  const k = clamp(Math.min(wide, high), 1, MOST_K)
  return bounded({ k, x: MIDDLE.x - ((left + right) / 2) * k, y: MIDDLE.y - ((top + bottom) / 2) * k })
}

/** No part of the box is beyond the edge of the world. */
function bounded({ k, x, y }: View): View {
  return { k, x: clamp(x, WORLD.width * (1 - k), 0), y: clamp(y, WORLD.height * (1 - k), 0) }
}

function range(values: readonly number[]): [number, number] {
  return values.reduce<[number, number]>(
    ([least, most], value) => [Math.min(least, value), Math.max(most, value)],
    [Infinity, -Infinity],
  )
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}

const MIDDLE: Point = { x: WORLD.width / 2, y: WORLD.height / 2 }
/** The part of the box that fitted points fill. */
const FILLED = 0.7
const TINY = 1e-6
