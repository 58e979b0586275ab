import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { contrast, schemesOf } from './contrast'

const tokens = schemesOf(readFileSync(new URL('./tokens.css', import.meta.url), 'utf8'))
const GROUNDS = ['ground', 'surface', 'sunken']

const TEXT: [string, string[]][] = [
  ['ink', [...GROUNDS, 'accent-ground', 'ok-ground', 'warning-ground', 'critical-ground', 'heat-1', 'heat-2']],
  ['ink-2', [...GROUNDS, 'accent-ground', 'warning-ground', 'critical-ground']],
  ['ink-3', GROUNDS],
  ['accent', [...GROUNDS, 'accent-ground']],
  ['on-accent', ['accent']],
  // Lines are labelled at their ends in their own colour.
  ['series-2', ['surface']],
  ['series-3', ['surface']],
  ['series-4', ['surface']],
  ['series-5', ['surface']],
  ['series-6', ['surface']],
  ['ok', [...GROUNDS, 'ok-ground']],
  ['warning', [...GROUNDS, 'warning-ground']],
  ['critical', [...GROUNDS, 'critical-ground']],
]
const MARKS: [string, string[]][] = [
  ['field-edge', ['surface']],
  ['accent', GROUNDS],
  ['ok', GROUNDS],
  ['warning-mark', ['ground', 'surface']],
  ['critical', GROUNDS],
  ['on-mark', ['critical', 'warning-mark']],
  ['series-2', GROUNDS],
  ['series-3', GROUNDS],
  ['series-4', GROUNDS],
  ['series-5', GROUNDS],
  ['series-6', GROUNDS],
]

test('black on white has the largest contrast, and a colour has none with itself', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21)
  expect(contrast('#777777', '#777777')).toBe(1)
  expect(contrast('#767676', '#ffffff')).toBeCloseTo(4.54, 2)
})

test.each(['light', 'dark'] as const)('in %s, text reaches 4.5:1 and marks 3:1', (scheme) => {
  expect(weak(TEXT, scheme, 4.5)).toEqual([])
  expect(weak(MARKS, scheme, 3)).toEqual([])
})

/** The pairs below the least contrast. */
function weak(pairs: [string, string[]][], scheme: 'light' | 'dark', least: number): string[] {
  const colour = (name: string) => tokens.get(name)?.[scheme] ?? ''
  const all = pairs.flatMap(([mark, grounds]) => grounds.map((ground): [string, string] => [mark, ground]))
  const measured = all.map(([mark, ground]) => ({ mark, ground, ratio: contrast(colour(mark), colour(ground)) }))
  return measured.filter(({ ratio }) => !(ratio >= least)).map((one) => `${one.mark} on ${one.ground}: ${one.ratio}`)
}
