import { expect, test } from 'vitest'

import { bandOf, offset_px } from './band'

const MANY = Array.from({ length: 500 }, () => 44)

test('a short list has all of its rows', () => {
  expect(bandOf([44, 24, 44], 5000, 800)).toEqual({ from: 0, to: 3, before_px: 0, after_px: 0 })
})

test('of a long list, rows near the screen are there and the others keep their space', () => {
  const band = bandOf(MANY, 4400, 880)
  expect(band).toEqual({ from: 90, to: 130, before_px: 90 * 44, after_px: 370 * 44 })
  expect(bandOf(MANY, 0, 880)).toMatchObject({ from: 0, before_px: 0, to: 30 })
  expect(bandOf(MANY, -600, 880)).toMatchObject({ from: 0, to: 17 })
})

test('the space is the same at every place, with rows of several heights', () => {
  const heights = MANY.map((height, index) => (index % 7 === 0 ? 24 : height))
  const total = offset_px(heights, heights.length)
  for (let top_px = -2000; top_px < total + 3000; top_px += 333) {
    const band = bandOf(heights, top_px, 900)
    const shown_px = heights.slice(band.from, band.to).reduce((sum, one) => sum + one, 0)
    expect(band.to).toBeGreaterThan(band.from)
    expect(band.before_px + shown_px + band.after_px).toBe(total)
  }
})

test('a list far below or above the screen keeps some rows', () => {
  expect(bandOf(MANY, -9000, 880)).toMatchObject({ from: 0, to: 1 })
  expect(bandOf(MANY, 90_000, 880).to).toBe(500)
})
