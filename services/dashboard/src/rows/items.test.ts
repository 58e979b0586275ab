import { expect, test } from 'vitest'

import { itemsOf, shapeOf } from './items'

const ROWS = ['a1', 'a2', 'b1']

test('the shape follows the width, and is whole before it is measured', () => {
  expect([0, 1200, 736, 358].map(shapeOf)).toEqual(['whole', 'whole', 'reduced', 'cards'])
})

test('headings stand above the rows of their group', () => {
  const items = itemsOf(ROWS, (row) => row.charAt(0), 'reduced')
  expect(items.map((item) => item.row ?? item.group)).toEqual(['a', 'a1', 'a2', 'b', 'b1'])
  expect(items.map((item) => item.height_px)).toEqual([24, 44, 44, 24, 44])
  expect(items.map((item) => item.number)).toEqual([0, 1, 2, 0, 3])
  expect(items[0]?.rows).toEqual(['a1', 'a2'])
})

test('without groups there are rows alone, higher ones as cards', () => {
  expect(itemsOf(ROWS, null, 'cards').map((item) => item.height_px)).toEqual([64, 64, 64])
  expect(itemsOf([], null, 'whole')).toEqual([])
})
