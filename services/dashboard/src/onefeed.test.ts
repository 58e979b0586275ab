import { expect, test } from 'vitest'

import { bytes } from './format'
import { legName, powers } from './onefeed'

test('columns have no holes', () => {
  const made = powers([{ to: 256, count: 3 }, { to: 1024, count: 1 }], bytes)
  expect(made).toEqual([
    { title: 'up to 256 B', count: 3 },
    { title: 'up to 512 B', count: 0 },
    { title: 'up to 1.02 kB', count: 1 },
  ])
  expect(powers([], bytes)).toEqual([])
  expect(powers([{ to: 1, count: 2 }], bytes)).toEqual([{ title: 'up to 1 B', count: 2 }])
})

test('a stream is named after the leg that it ran beside', () => {
  expect(legName(7)).toBe('7')
  expect(legName(2 ** 30 + 7)).toBe('catch-up beside 7')
})
