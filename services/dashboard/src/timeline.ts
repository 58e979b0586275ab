/** Geometry of the timeline of orders: by feed, lanes with the set-up, the circuit and the end of each order. */
import { counted, hasFailed, type Order } from './demand'
import { timeOfDay } from './format'

export interface Timeline {
  feeds: FeedDrawn[]
  ticks: { x: number; text: string }[]
  height: number
  /** The picture in words. */
  name: string
}

export interface FeedDrawn {
  feed: string
  /** The baseline of the feed's name. */
  y: number
  orders: OrderDrawn[]
}

export interface OrderDrawn {
  order: number
  y: number
  parts: Part[]
  /** A sign at the end: the circuit is gone, or the order came to nothing. */
  end: { x: number; sign: 'gone' | 'failed' } | null
  sentence: string
}

/** A part of an order's time: until the circuit is up, while it is, and from the release until it is gone. */
export interface Part {
  kind: 'set-up' | 'up' | 'release'
  x: number
  width: number
}

export const SIZE = { width: 640, left: 6, right: 634, bar: 8 }
export const HOURS = 24

/** The timeline of the last 24 hours; null if there was no order. Dry runs have no circuit and are left out. */
export function timelineOf(orders: Order[], now: string): Timeline | null {
  const to = Date.parse(now)
  const from = to - HOURS * HOUR_MS
  const shown = orders.filter((order) => order.step !== 'would-order' && endOf(order, to) >= from)
  if (shown.length === 0) return null
  const x = (at: number) => SIZE.left + (clamped(at, from, to) - from) * ((SIZE.right - SIZE.left) / (to - from))
  const feeds: FeedDrawn[] = []
  let y = 0
  for (const [feed, its] of byFeed(shown)) {
    const lanes = lanesOf(its, to)
    const top = y + NAME_HEIGHT
    const drawn = its.map((order) => drawnOf(order, top + (lanes.get(order.order) ?? 0) * LANE_HEIGHT, x, to))
    feeds.push({ feed, y: y + NAME_BASELINE, orders: drawn })
    y = top + (Math.max(...lanes.values()) + 1) * LANE_HEIGHT
  }
  return { feeds, ticks: ticksOf(from, to, x), height: y + AXIS_HEIGHT, name: nameOf(feeds, shown) }
}

function byFeed(orders: Order[]): [string, Order[]][] {
  const groups = new Map<string, Order[]>()
  for (const order of orders) groups.set(order.feed, [...(groups.get(order.feed) ?? []), order])
  return [...groups].toSorted(([one], [other]) => one.localeCompare(other))
}

/** The lane of each order, by number: the first that is free; beyond the last lane they overlap. */
function lanesOf(orders: Order[], to: number): Map<number, number> {
  const free: number[] = []
  const lanes = new Map<number, number>()
  for (const order of orders.toSorted((one, other) => begunOf(one) - begunOf(other))) {
    const found = free.findIndex((until) => until <= begunOf(order))
    const lane = found >= 0 ? found : Math.min(free.length, LANES_MOST - 1)
    free[lane] = Math.max(free[lane] ?? 0, endOf(order, to))
    lanes.set(order.order, lane)
  }
  return lanes
}

function drawnOf(order: Order, y: number, x: (at: number) => number, to: number): OrderDrawn {
  const end = endOf(order, to)
  const up = order.up_at === null ? end : Date.parse(order.up_at)
  const released = order.released_at === null ? end : Date.parse(order.released_at)
  const part = (kind: Part['kind'], from: number, until: number): Part[] =>
    until > from && x(until) > SIZE.left ? [{ kind, x: x(from), width: x(until) - x(from) }] : []
  const parts = [
    ...part('set-up', begunOf(order), Math.min(up, released)),
    ...part('up', up, released),
    ...part('release', released, end),
  ]
  const sign = hasFailed(order) ? 'failed' : 'gone'
  const isOver = order.ended_at !== null || hasFailed(order)
  return { order: order.order, y, parts, end: isOver ? { x: x(end), sign } : null, sentence: sentenceOf(order) }
}

function sentenceOf(order: Order): string {
  const moments: [string, string | null][] = [
    ['ordered', order.ordered_at],
    ['up', order.up_at],
    ['released', order.released_at],
    [hasFailed(order) ? order.step : 'gone', order.ended_at],
  ]
  const passed = moments.flatMap(([word, at]) => (at === null ? [] : [`${word} ${timeOfDay(at)}`]))
  return `Order ${order.order} to ${order.site}: ${passed.join(', ')}`
}

/** `Orders in the last 24 h: NGRID 12 orders, 1 of them refused or failed; NEXRAD2 1 order`. */
function nameOf(feeds: FeedDrawn[], orders: Order[]): string {
  const each = feeds.map(({ feed }) => {
    const its = orders.filter((order) => order.feed === feed)
    const failed = its.filter(hasFailed).length
    return `${feed} ${counted(its.length, 'order')}${failed > 0 ? `, ${failed} of them refused or failed` : ''}`
  })
  return `Orders in the last ${HOURS} h: ${each.join('; ')}`
}

function ticksOf(from: number, to: number, x: (at: number) => number): Timeline['ticks'] {
  const first = Math.ceil(from / TICK_MS) * TICK_MS
  const count = Math.floor((to - first) / TICK_MS) + 1
  return Array.from({ length: count }, (_, number) => first + number * TICK_MS).map((at) => ({
    x: x(at),
    text: new Date(at).toISOString().slice(11, 16),
  }))
}

const begunOf = (order: Order) => Date.parse(order.ordered_at)

/** An order that was refused without a moment of its own ended where it began. */
function endOf(order: Order, to: number): number {
  if (order.ended_at !== null) return Date.parse(order.ended_at)
  return hasFailed(order) ? begunOf(order) : to
}

const clamped = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high)

const HOUR_MS = 3_600_000
const TICK_MS = 4 * HOUR_MS
const NAME_HEIGHT = 20
const NAME_BASELINE = 14
const LANE_HEIGHT = 13
const LANES_MOST = 8
const AXIS_HEIGHT = 22
