import { expect, test } from 'vitest'

import { sidesOf, type Named } from './names'

const at = (name: string, x: number, y: number, isNeeded = false): Named => ({ name, x, y, isNeeded })

function sides(...wanted: Named[]) {
  return Object.fromEntries(sidesOf(wanted, wanted, 1000))
}

test('a name stands right of its mark, at the right edge left of it', () => {
  expect(sides(at('unl.edu', 100, 100), at('otago.ac.nz', 980, 300))).toEqual({
    'unl.edu': 'right',
    'otago.ac.nz': 'left',
  })
})

test('a name covers no other mark and no other name', () => {
  expect(sides(at('unl.edu', 400, 100), at('cornell.edu', 440, 98))).toEqual({
    'unl.edu': 'left',
    'cornell.edu': 'right',
  })
  expect(sides(at('a.edu', 400, 100), at('b.edu', 400, 115))['b.edu']).toBe('left')
  expect(sides(at('a.edu', 400, 100), at('b.edu', 400, 125))['b.edu']).toBe('right')
})

test('a name without room is left out, unless it is needed', () => {
  const near = [
    [0, -20],
    [0, 20],
    [30, 0],
    [-30, 0],
  ] as const
  const crowd = near.map(([x, y], number) => at(`n${number}`, 400 + x, 100 + y))
  expect(sides(...crowd, at('middle.edu', 400, 100))).not.toHaveProperty('middle.edu')
  expect(sides(...crowd, at('middle.edu', 400, 100, true))['middle.edu']).toBe('right')
})

test('needed names choose first', () => {
  const found = sides(at('plain.edu', 300, 100), at('down.edu', 240, 100, true))
  expect(Object.keys(found)[0]).toBe('down.edu')
})
