import { expect, test } from 'vitest'

import { isLetter, movedTo } from './moves'

test('keys move between rows and stop at both ends', () => {
  expect(movedTo('ArrowDown', 0, 3)).toBe(1)
  expect(movedTo('j', 2, 3)).toBe(2)
  expect(movedTo('k', 0, 3)).toBe(0)
  expect(movedTo('ArrowUp', 2, 3)).toBe(1)
  expect(movedTo('Home', 2, 3)).toBe(0)
  expect(movedTo('End', 0, 3)).toBe(2)
  expect(movedTo('PageDown', 5, 100)).toBe(15)
})

test('without a row the first step leads to the first one', () => {
  expect(movedTo('k', -1, 3)).toBe(0)
  expect(movedTo('j', -1, 0)).toBeNull()
  expect(movedTo('a', 1, 3)).toBeNull()
  expect([isLetter('j'), isLetter('ArrowDown')]).toEqual([true, false])
})
