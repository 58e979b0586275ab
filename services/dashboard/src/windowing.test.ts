import { expect, test } from 'vitest'

import { lots } from './windowing'

test('every row is in one lot, in order', () => {
  const rows = Array.from({ length: 45 }, (_, number) => number)
  const made = lots(rows, 20)
  expect(made.map((lot) => lot.rows.length)).toEqual([20, 20, 5])
  expect(made.flatMap((lot) => lot.rows)).toEqual(rows)
  expect(lots([], 20)).toEqual([])
  expect(lots(rows)).toHaveLength(1)
  expect(lots([...rows, ...rows])).toHaveLength(5)
})
