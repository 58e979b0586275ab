/** Wheel, drag and keys of the map, for an element that fills its box. */
import { WORLD, type Point } from './projection'

export interface Moves {
  /** `at` is the point that stays in place, in units of the box. */
  zoom: (factor: number, at?: Point) => void
  pan: (by: Point) => void
}

/** An action: listens until the element goes. Marks and buttons keep their own presses. */
export function gestures(box: HTMLElement, moves: Moves): { destroy: () => void } {
  const ended = new AbortController()
  const options = { signal: ended.signal }
  box.addEventListener('wheel', (event) => wheel(box, event, moves), { ...options, passive: false })
  box.addEventListener('pointerdown', (event) => drag(box, event, moves), options)
  box.addEventListener('keydown', (event) => key(event, moves), options)
  return { destroy: () => ended.abort() }
}

/** The effect of a key on the map; null if it has none. */
export function moveOf(key: string): { factor: number } | { by: Point } | null {
  if (key === '+' || key === '=') return { factor: STEP }
  if (key === '-') return { factor: 1 / STEP }
  const by = ARROWS.get(key)
  return by === undefined ? null : { by }
}

export const STEP = 2

function wheel(box: HTMLElement, event: WheelEvent, moves: Moves): void {
  event.preventDefault()
  const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1
  const turned_px = Math.min(Math.max(event.deltaY * lines, -MOST_TURN_PX), MOST_TURN_PX)
  const bounds = box.getBoundingClientRect()
  const unit_px = bounds.width / WORLD.width
  moves.zoom(2 ** (-turned_px / DOUBLE_PX), {
    x: (event.clientX - bounds.left) / unit_px,
    y: (event.clientY - bounds.top) / unit_px,
  })
}

function drag(box: HTMLElement, event: PointerEvent, moves: Moves): void {
  const isOnMark = event.target instanceof Element && event.target.closest('a, button') !== null
  if (isOnMark || event.button !== 0) return
  const unit_px = box.getBoundingClientRect().width / WORLD.width
  let last = { x: event.clientX, y: event.clientY }
  box.setPointerCapture(event.pointerId)
  const ended = new AbortController()
  const move = ({ clientX: x, clientY: y }: PointerEvent) => {
    moves.pan({ x: (x - last.x) / unit_px, y: (y - last.y) / unit_px })
    last = { x, y }
  }
  box.addEventListener('pointermove', move, { signal: ended.signal })
  for (const end of ['pointerup', 'pointercancel'] as const) {
    box.addEventListener(end, () => ended.abort(), { signal: ended.signal })
  }
}

function key(event: KeyboardEvent, moves: Moves): void {
  const move = event.ctrlKey || event.metaKey || event.altKey ? null : moveOf(event.key)
  if (move === null) return
  event.preventDefault()
  if ('factor' in move) moves.zoom(move.factor)
  else moves.pan(move.by)
}

const PAN = 80
/** The map moves against the arrow, as its window moves with it. */
const ARROWS = new Map<string, Point>([
  ['ArrowLeft', { x: PAN, y: 0 }],
  ['ArrowRight', { x: -PAN, y: 0 }],
  ['ArrowUp', { x: 0, y: PAN }],
  ['ArrowDown', { x: 0, y: -PAN }],
])
/** Turned this far, the wheel doubles the size. */
const DOUBLE_PX = 240
const MOST_TURN_PX = 240
const LINE_PX = 16
