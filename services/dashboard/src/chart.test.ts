import { expect, test } from 'vitest'

import { decades, history, latenciesOf, position, sparkline, ticks } from './chart'
import { recorded } from './fixtures/recorded'

const minute = (at: string, p50: number | null, p99: number | null, negative = 0) => ({
  at: `2026-03-14T15:${at}:00Z`,
  p50,
  p95: p99,
  p99,
  max: p99,
  negative,
})

test('values at or below zero are flagged at the floor and not drawn as if they were small', () => {
  const moments = [
    minute('01', 4, 30),
    minute('02', 0, 40),
    minute('03', -2, -1),
    minute('04', null, null),
    minute('05', 3, 9, 1),
  ]
  const columns = history([60, 120, 180, 240, 300], moments)
  expect(columns.times_s).toEqual([60, 120, 180, 240, 300])
  expect(columns.p50).toEqual([4, null, null, null, 3])
  expect(columns.p99).toEqual([30, 40, null, null, 9])
  expect(columns.flagged).toEqual([null, 1, 1, null, 1])
})

test('a step of which nothing is known is a gap in each curve', () => {
  const columns = history([60, 120, 180], [minute('01', 4, 30), null, minute('03', 5, 50)])
  expect([columns.times_s, columns.p50, columns.p99, columns.flagged]).toEqual([
    [60, 120, 180],
    [4, null, 5],
    [30, null, 50],
    [null, null, null],
  ])
})

test('the axis covers whole decades and at least one', () => {
  expect(decades([0.3, 4200])).toEqual({ floor_ms: 0.1, ceiling_ms: 10_000 })
  expect(decades([10, 10])).toEqual({ floor_ms: 10, ceiling_ms: 100 })
  expect(decades([1000, 100])).toEqual({ floor_ms: 100, ceiling_ms: 1000 })
  expect(decades([-1, null])).toEqual({ floor_ms: 1, ceiling_ms: 1000 })
})

test('ticks stand at each decade', () => {
  expect(ticks(0.1, 1000)).toEqual([0.1, 1, 10, 100, 1000])
})

test('a position is the share of the axis below a value', () => {
  expect(position(10, 1, 100)).toBe(0.5)
  expect(position(1, 1, 100)).toBe(0)
  expect(position(0, 1, 100)).toBeNull()
  expect(position(-3, 1, 100)).toBeNull()
  expect(position(null, 1, 100)).toBeNull()
})

test('every latency and objective of the feeds fits on the common axis', () => {
  const values = latenciesOf(recorded().feeds)
  const { floor_ms, ceiling_ms } = decades(values)
  expect(values.length).toBeGreaterThan(20)
  for (const value of values) {
    const share = position(value, floor_ms, ceiling_ms)
    if (value !== null && value > 0) expect(share).toBeGreaterThanOrEqual(0)
    if (share !== null) expect(share).toBeLessThanOrEqual(1)
  }
})

test('a sparkline spans its box and silence lies flat', () => {
  expect(sparkline([0, 5, 10], 100, 20)).toBe('0,19 50,10 100,1')
  expect(sparkline([0, 0], 100, 20)).toBe('0,19 100,19')
  expect(sparkline([], 100, 20)).toBe('')
})
