import { expect, test } from 'vitest'
import type { Order } from './demand'
import { NOW, ORDER } from './fixtures/demand'
import { SIZE, timelineOf, type Timeline } from './timeline'

const DAY_MS = 86_400_000
const PIXELS = SIZE.right - SIZE.left

function drawn(...orders: Partial<Order>[]): Timeline {
  const found = timelineOf(
    orders.map((order, number) => ({ ...ORDER, order: number, ...order })),
    NOW,
  )
  if (found === null) throw new Error('nothing is drawn')
  return found
}

/** Seconds from the left edge of the picture. */
const seconds = (x: number) => ((x - SIZE.left) / PIXELS) * (DAY_MS / 1000)

test('an order has its set-up, its circuit, its release and its end', () => {
  const [order] = drawn({}).feeds[0]?.orders ?? []
  expect(order?.parts.map((part) => part.kind)).toEqual(['set-up', 'up', 'release'])
  const lengths = order?.parts.map((part) => Math.round((part.width / PIXELS) * (DAY_MS / 1000)))
  expect(lengths).toEqual([60, 120, 60])
  expect(order?.end?.sign).toBe('gone')
  expect(seconds(order?.end?.x ?? 0)).toBeCloseTo(86_400 - 326, 0)
  expect(order?.sentence).toBe(
    'Order 0 to unl.edu: ordered 15:00:00Z, up 15:01:00Z, released 15:03:00Z, gone 15:04:00Z',
  )
})

test('an open order lasts until now and has no end', () => {
  const waiting = { up_at: null, released_at: null, ended_at: null, step: 'ordered' } as const
  const up = { released_at: null, ended_at: null, step: 'up' } as const
  const [first, second] = drawn(waiting, up).feeds[0]?.orders ?? []
  expect(first?.parts.map((part) => part.kind)).toEqual(['set-up'])
  expect(second?.parts.map((part) => part.kind)).toEqual(['set-up', 'up'])
  expect([first?.end, second?.end]).toEqual([null, null])
  expect((second?.parts[1]?.x ?? 0) + (second?.parts[1]?.width ?? 0)).toBeCloseTo(SIZE.right)
})

test('a refusal is a cross, even without a moment of its end', () => {
  const refused = { step: 'refused', up_at: null, released_at: null, ended_at: null } as const
  const timeline = drawn(refused, {})
  const [order] = timeline.feeds[0]?.orders ?? []
  expect(order?.parts).toEqual([])
  expect(order?.end?.sign).toBe('failed')
  expect(timeline.name).toBe('Orders in the last 24 h: NGRID 2 orders, 1 of them refused or failed')
})

test('orders at the same time have lanes of their own, and a free lane is taken again', () => {
  const later = { ordered_at: '2026-03-14T15:05:00Z', up_at: null, released_at: null, ended_at: null }
  const [first, second, third] = drawn({}, {}, { ...later, step: 'ordered' }).feeds[0]?.orders ?? []
  expect(second?.y).toBeGreaterThan((first?.y ?? 0) + SIZE.bar)
  expect(third?.y).toBe(first?.y)
})

test('a crowd of orders at the same time keeps the picture small', () => {
  const few = drawn(...Array.from({ length: 8 }, () => ({})))
  expect(drawn(...Array.from({ length: 300 }, () => ({}))).height).toBe(few.height)
})

test('feeds are by name, and each is below the one before', () => {
  const timeline = drawn({ feed: 'WARN' }, { feed: 'CONDUIT' }, {})
  expect(timeline.feeds.map((one) => one.feed)).toEqual(['CONDUIT', 'NGRID', 'WARN'])
  const heights = timeline.feeds.flatMap((one) => [one.y, one.orders[0]?.y ?? 0])
  expect(heights).toEqual(heights.toSorted((one, other) => one - other))
  expect(Math.max(...heights) + SIZE.bar).toBeLessThan(timeline.height)
})

test('orders of the day before and dry runs are not drawn, and one that began before is cut', () => {
  const old = { ordered_at: '2026-03-13T12:00:00Z', ended_at: '2026-03-13T13:00:00Z' }
  expect(timelineOf([{ ...ORDER, ...old }, { ...ORDER, step: 'would-order' }], NOW)).toBeNull()
  const begun = { ...old, up_at: '2026-03-13T12:01:00Z', released_at: null, ended_at: '2026-03-13T16:00:00Z' }
  const [order] = drawn(begun).feeds[0]?.orders ?? []
  expect(order?.parts.map((part) => [part.kind, part.x])).toEqual([['up', SIZE.left]])
})

test('the axis has a tick each four hours of UTC', () => {
  const ticks = drawn({}).ticks
  expect(ticks.map((tick) => tick.text)).toEqual(['16:00', '20:00', '00:00', '04:00', '08:00', '12:00'])
  expect(ticks.every((tick) => tick.x >= SIZE.left && tick.x <= SIZE.right)).toBe(true)
})
