/** Places in the chart: pixels of time and value, for what lies above the drawing. */
import { position } from '../../chart'
import type { Scale } from '../linesview'

export interface Plane {
  width: number
  height: number
  left: number
  right: number
  top: number
  bottom: number
  from_ms: number
  to_ms: number
  floor_ms: number
  ceiling_ms: number
  scale: Scale
}

/** The margins of the drawing: on a narrow one the lines have no labels at their ends. */
export function marginsOf(width: number): Pick<Plane, 'left' | 'right' | 'top' | 'bottom'> {
  return { left: 64, right: width < NARROW_PX ? 12 : 176, top: 12, bottom: 28 }
}

export function xOf(plane: Plane, at_ms: number): number {
  const share = (at_ms - plane.from_ms) / Math.max(plane.to_ms - plane.from_ms, 1)
  return plane.left + share * (plane.width - plane.left - plane.right)
}

/** The moment under a pixel, within the range. */
export function momentAt(plane: Plane, x: number): number {
  const share = (x - plane.left) / Math.max(plane.width - plane.left - plane.right, 1)
  return plane.from_ms + Math.min(Math.max(share, 0), 1) * (plane.to_ms - plane.from_ms)
}

/** Null for a value that has no place on the axis. */
export function yOf(plane: Plane, ms: number | null): number | null {
  const share =
    plane.scale === 'log'
      ? position(ms, plane.floor_ms, plane.ceiling_ms)
      : ms === null
        ? null
        : (ms - plane.floor_ms) / (plane.ceiling_ms - plane.floor_ms)
  return share === null ? null : plane.height - plane.bottom - share * (plane.height - plane.top - plane.bottom)
}

/** The step after a key; null: the key has none. Without a crosshair it begins at the newest step. */
export function stepByKey(key: string, step: number | null, steps: number): number | null {
  const last = steps - 1
  if (last < 0) return null
  if (key === 'Home') return 0
  if (key === 'End') return last
  const by = BY.get(key)
  if (by === undefined) return null
  return step === null ? last : Math.min(Math.max(step + by, 0), last)
}

const BY = new Map([
  ['ArrowLeft', -1],
  ['ArrowRight', 1],
  ['PageUp', -12],
  ['PageDown', 12],
])
export const NARROW_PX = 640
