import { expect, test } from 'vitest'

import { marginsOf, momentAt, stepByKey, xOf, yOf, type Plane } from './plane'

const PLANE: Plane = {
  width: 1000,
  height: 320,
  ...marginsOf(1000),
  from_ms: 0,
  to_ms: 60_000,
  floor_ms: 10,
  ceiling_ms: 1000,
  scale: 'log',
}

test('pixels and moments lead to each other, within the range', () => {
  const { left, right, width } = PLANE
  expect([xOf(PLANE, 0), xOf(PLANE, 60_000)]).toEqual([left, width - right])
  for (const at_ms of [0, 12_345, 60_000]) expect(momentAt(PLANE, xOf(PLANE, at_ms))).toBeCloseTo(at_ms)
  expect([momentAt(PLANE, -50), momentAt(PLANE, 5000)]).toEqual([0, 60_000])
})

test('a value has its place on either scale; one without a place has none', () => {
  const [bottom, top] = [PLANE.height - PLANE.bottom, PLANE.top]
  expect([yOf(PLANE, 10), yOf(PLANE, 100), yOf(PLANE, 1000)]).toEqual([bottom, (bottom + top) / 2, top])
  expect([yOf(PLANE, 0), yOf(PLANE, null)]).toEqual([null, null])
  const linear: Plane = { ...PLANE, scale: 'linear', floor_ms: 0 }
  expect([yOf(linear, 0), yOf(linear, 500), yOf(linear, null)]).toEqual([bottom, (bottom + top) / 2, null])
})

test('keys move the crosshair from step to step, and not beyond the range', () => {
  expect(stepByKey('ArrowLeft', null, 10)).toBe(9)
  expect(stepByKey('ArrowLeft', 5, 10)).toBe(4)
  expect([stepByKey('ArrowLeft', 0, 10), stepByKey('PageDown', 5, 10)]).toEqual([0, 9])
  expect([stepByKey('Home', 5, 10), stepByKey('End', 5, 10)]).toEqual([0, 9])
  expect([stepByKey('x', 5, 10), stepByKey('End', null, 0)]).toEqual([null, null])
})

test('a narrow chart keeps its width for the lines', () => {
  expect(marginsOf(390).right).toBeLessThan(marginsOf(1000).right)
})
