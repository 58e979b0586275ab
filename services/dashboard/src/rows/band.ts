/** Virtual scrolling: only items near the screen have rows, the space of the others is kept above and below. */

/** Items `from` to `to`, the end not included, and the space beside them. */
export interface Band {
  from: number
  to: number
  before_px: number
  after_px: number
}

/** `top_px`: how far the list's beginning is above the screen's upper edge; negative below it. */
export function bandOf(heights_px: readonly number[], top_px: number, screen_px: number): Band {
  const whole = { from: 0, to: heights_px.length, before_px: 0, after_px: 0 }
  if (heights_px.length <= ROWS_SHORT) return whole
  const [first_px, last_px] = [top_px - SPARE_PX, top_px + screen_px + SPARE_PX]
  let [from, to, before_px, at_px] = [0, 0, 0, 0]
  for (const [index, height_px] of heights_px.entries()) {
    const end_px = at_px + height_px
    if (end_px <= first_px) [from, before_px] = [index + 1, end_px]
    if (at_px < last_px) to = index + 1
    at_px = end_px
  }
  // A list that is scrolled out of sight keeps its last rows.
  if (from >= heights_px.length) return bandOf(heights_px, at_px - screen_px, screen_px)
  to = Math.max(to, Math.min(from + 1, heights_px.length))
  return { from, to, before_px, after_px: at_px - sum(heights_px, to) }
}

/** The space above an item. */
export function offset_px(heights_px: readonly number[], index: number): number {
  return sum(heights_px, index)
}

function sum(heights_px: readonly number[], count: number): number {
  return heights_px.slice(0, count).reduce((total, height_px) => total + height_px, 0)
}

/** So many are drawn whole, so that the browser's search finds all of them. */
const ROWS_SHORT = 60
/** Rows beyond the screen that are ready when it scrolls. */
const SPARE_PX = 440
