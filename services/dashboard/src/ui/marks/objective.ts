/** Geometry of the bar of an objective: 56 px for 0 to 170 %, with a tick at 100 %. */

export interface Bar {
  width_px: number
  tick_px: number
  isOver: boolean
}

/** `share` is a latency divided by its objective; null draws no value. */
export function barOf(share: number | null): Bar {
  const shown = share === null || !Number.isFinite(share) ? 0 : Math.min(Math.max(share, 0), SCALE)
  const least = shown > 0 ? LEAST_PX : 0
  const width_px = Math.max(Math.round((WIDTH_PX * shown) / SCALE), least)
  return { width_px, tick_px: Math.round(WIDTH_PX / SCALE), isOver: share !== null && share > 1 }
}

const WIDTH_PX = 56
const SCALE = 1.7
const LEAST_PX = 2
