import { expect, test } from 'vitest'

import { Keys, type Asked, type Press } from './keys'

const AT: Omit<Press, 'key'> = { isModified: false, isTaken: false, at_ms: 0 }

function asked(...presses: (Partial<Press> & { key: string })[]): Asked[] {
  const keys = new Keys()
  return presses.map((one) => keys.press({ ...AT, ...one }))
}

test('a slash searches and a question mark lists the keys', () => {
  expect(asked({ key: '/' }, { key: 'Shift' }, { key: '?' })).toEqual([{ do: 'search' }, null, { do: 'list' }])
})

test('g and a letter open a section within a moment', () => {
  expect(asked({ key: 'g' }, { key: 'f', at_ms: 1500 })).toEqual([null, { do: 'go', letter: 'f' }])
  expect(asked({ key: 'g' }, { key: 'f', at_ms: 1501 })).toEqual([null, null])
  expect(asked({ key: 'f' })).toEqual([null])
  expect(asked({ key: 'g' }, { key: 'g' }, { key: 'f' })).toEqual([null, { do: 'go', letter: 'g' }, null])
  expect(asked({ key: 'g' }, { key: 'Escape' }, { key: 'f' })).toEqual([null, null, null])
})

test('keys belong to a field that has the focus, and to the browser with a modifier', () => {
  expect(asked({ key: '/', isTaken: true }, { key: '?', isModified: true })).toEqual([null, null])
  expect(asked({ key: 'g', isTaken: true }, { key: 'f' })).toEqual([null, null])
  expect(asked({ key: 'g' }, { key: 'l', isModified: true })).toEqual([null, null])
})
