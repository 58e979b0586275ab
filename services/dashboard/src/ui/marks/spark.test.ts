import { expect, test } from 'vitest'

import { sparkOf } from './spark'

const BOX = { width: 104, height: 44, margin: 2 }

test('a sparkline starts at zero, and its last point is at the right edge', () => {
  const spark = sparkOf([0, 5, 10], BOX)
  expect(spark.lines).toEqual(['M2 42L52 22L102 2'])
  expect(spark.areas).toEqual(['M2 42L52 22L102 2L102 42L2 42Z'])
  expect(spark.last).toEqual({ x: 102, y: 2 })
})

test('a gap stays a gap', () => {
  expect(sparkOf([1, 1, null, 1, null], BOX).lines).toEqual(['M2 2L27 2', 'M77 2'])
  expect(sparkOf([null, null], BOX)).toEqual({ lines: [], areas: [], last: null, limit: null })
})

test('the scale includes the limit, and silence is a flat line', () => {
  expect(sparkOf([50, 50], BOX, 100)).toMatchObject({ last: { y: 22 }, limit: 2 })
  expect(sparkOf([0, 0], BOX).lines).toEqual(['M2 42L102 42'])
})
