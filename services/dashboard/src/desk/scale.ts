/** Time and its place on the screen. Everything is UTC in milliseconds, so that no change of clocks moves a window. */

/** The length of the calendar on screen. */
export type Span = 'hours' | 'day' | 'week' | 'month'

/** The window on screen, [begin, end). */
export interface Frame {
  begin_ms: number
  end_ms: number
}

/** A line of the grid. */
export interface Tick {
  at_ms: number
  label: string
  /** Whether a day begins there. */
  isDay: boolean
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** The step of the pointer and of the arrow keys, and the distance of the grid's lines. */
export const STEPS: Record<Span, { snap_ms: number; tick_ms: number; title: string }> = {
  hours: { snap_ms: 5 * MINUTE_MS, tick_ms: HOUR_MS, title: 'Hours' },
  day: { snap_ms: 15 * MINUTE_MS, tick_ms: 3 * HOUR_MS, title: 'Day' },
  week: { snap_ms: HOUR_MS, tick_ms: DAY_MS, title: 'Week' },
  month: { snap_ms: 6 * HOUR_MS, tick_ms: 3 * DAY_MS, title: 'Month' },
}
export const SPANS: Span[] = ['hours', 'day', 'week', 'month']

/** The frame that begins at a moment; a month is the whole one around it. */
export function frameAt(span: Span, begin_ms: number): Frame {
  if (span === 'month') return { begin_ms: monthOf(begin_ms, 0), end_ms: monthOf(begin_ms, 1) }
  const begin = floor(begin_ms, span === 'week' ? DAY_MS : HOUR_MS)
  return { begin_ms: begin, end_ms: begin + LENGTHS[span] }
}

/** The frame around now: a little of the past, then what comes. */
export function frameNow(span: Span, now_ms: number): Frame {
  const past_ms = { hours: HOUR_MS, day: 2 * HOUR_MS, week: DAY_MS, month: 0 }[span]
  return frameAt(span, now_ms - past_ms)
}

/** The frame before (-1) or after (1) one. */
export function turned(span: Span, frame: Frame, by: -1 | 1): Frame {
  if (span === 'month') return frameAt(span, by < 0 ? frame.begin_ms - 1 : frame.end_ms)
  return frameAt(span, frame.begin_ms + by * LENGTHS[span])
}

/** The place of a moment in a frame: 0 at its begin, 1 at its end, and outside beyond them. */
export function shareOf(frame: Frame, at_ms: number): number {
  return (at_ms - frame.begin_ms) / (frame.end_ms - frame.begin_ms)
}

/** The place of a moment in a track of so many pixels. */
export function pixelsOf(frame: Frame, width_px: number, at_ms: number): number {
  return shareOf(frame, at_ms) * width_px
}

/** The moment at a place of a track; a track without width shows its begin. */
export function timeOf(frame: Frame, width_px: number, x_px: number): number {
  const share = width_px > 0 ? x_px / width_px : 0
  return frame.begin_ms + share * (frame.end_ms - frame.begin_ms)
}

/** The length of time of so many pixels. */
export function lengthOf(frame: Frame, width_px: number, x_px: number): number {
  return timeOf(frame, width_px, x_px) - frame.begin_ms
}

/** The nearest multiple of a step since 1970, which is a whole minute of UTC on every day of the year. */
export function snapped(at_ms: number, step_ms: number): number {
  return Math.round(at_ms / step_ms) * step_ms
}

/** The part of a window inside a frame as left edge and width, in percent; `null` if there is none. */
export function placeOf(frame: Frame, begin_ms: number, end_ms: number): { left: number; width: number } | null {
  const from = Math.max(shareOf(frame, begin_ms), 0)
  const to = Math.min(shareOf(frame, end_ms), 1)
  return to > from ? { left: from * 100, width: (to - from) * 100 } : null
}

/** The lines of the grid; a frame's own edges have none. */
export function ticks(span: Span, frame: Frame): Tick[] {
  const step_ms = STEPS[span].tick_ms
  const first_ms = Math.ceil(frame.begin_ms / step_ms) * step_ms
  const count = Math.max(Math.ceil((frame.end_ms - first_ms) / step_ms), 0)
  return Array.from({ length: count }, (_, index) => {
    const at_ms = first_ms + index * step_ms
    const isDay = at_ms % DAY_MS === 0
    return { at_ms, isDay, label: step_ms >= DAY_MS ? dayText(at_ms) : timeText(at_ms) }
  })
}

/** The days of a frame for the upper line of its header; empty where each line is a day already. */
export function days(span: Span, frame: Frame): Tick[] {
  if (STEPS[span].tick_ms >= DAY_MS) return []
  const first = { at_ms: frame.begin_ms, label: dayText(frame.begin_ms), isDay: false }
  const begun = floor(frame.begin_ms, DAY_MS) + DAY_MS
  const later = Array.from({ length: Math.ceil((frame.end_ms - begun) / DAY_MS) }, (_, index) => begun + index * DAY_MS)
  const room_ms = 0.12 * (frame.end_ms - frame.begin_ms)
  const shown = begun - frame.begin_ms < room_ms ? [] : [first]
  return [...shown, ...later.map((at_ms) => ({ at_ms, label: dayText(at_ms), isDay: true }))]
}

/** `20:00`. */
export function timeText(at_ms: number): string {
  return new Date(at_ms).toISOString().slice(11, 16)
}

/** `Mon 23 Nov`. */
export function dayText(at_ms: number): string {
  const at = new Date(at_ms)
  return `${WEEKDAYS[at.getUTCDay()]} ${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`
}

/** `Mon 23 Nov 20:00`, and with the year if that differs from the year of `now_ms`. */
export function momentText(at_ms: number, now_ms: number = Date.now()): string {
  const year = new Date(at_ms).getUTCFullYear()
  const named = year === new Date(now_ms).getUTCFullYear() ? '' : ` ${year}`
  return `${dayText(at_ms)}${named} ${timeText(at_ms)}`
}

/** The value of a field for a date and a time, which is read as UTC. */
export function fieldOf(at_ms: number): string {
  return new Date(at_ms).toISOString().slice(0, 16)
}

/** The moment in such a field; `null` while it is not complete. */
export function fieldTime(text: string): number | null {
  const found = /^\d{4,6}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(`${text.slice(0, 16)}Z`) : Number.NaN
  return Number.isNaN(found) ? null : found
}

function floor(at_ms: number, step_ms: number): number {
  return Math.floor(at_ms / step_ms) * step_ms
}

/** The begin of a month, so many months later. */
function monthOf(at_ms: number, later: number): number {
  const at = new Date(at_ms)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + later, 1)
}

const LENGTHS = { hours: 8 * HOUR_MS, day: DAY_MS, week: 7 * DAY_MS }
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
