import { expect, test } from 'vitest'

import { compressed, firstLoad, type Part } from '../../first-load'

const PARTS = new Map<string, Part>([
  ['index.js', { code: 'a'.repeat(5000), imports: ['shell.js', 'runtime.js'] }],
  ['shell.js', { code: 'b', imports: ['runtime.js', 'index.js'] }],
  ['runtime.js', { code: 'c', imports: [] }],
  ['chart.js', { code: 'd', imports: ['runtime.js'] }],
])

test('the first load is the entry with all that it imports, each once', () => {
  expect(firstLoad('index.js', PARTS).toSorted()).toEqual(['index.js', 'runtime.js', 'shell.js'])
  expect(firstLoad('nothing.js', PARTS)).toEqual([])
})

test('its size is that of the compressed scripts', () => {
  const bytes = compressed(['index.js'], PARTS)
  expect(bytes).toBeGreaterThan(20)
  expect(bytes).toBeLessThan(500)
  expect(compressed([], PARTS)).toBe(0)
})
