import { expect, test } from 'vitest'

import { clockOf, linkSentence, linkWords } from './clock'

const NOW = '2026-11-23T18:42:07Z'

test('the clock shows UTC, whatever the zone of the hub', () => {
  expect(clockOf(NOW)).toEqual({ time: '18:42:07', day: 'Mon 23 Nov' })
  expect(clockOf('2027-01-01T00:30:00+02:00')).toEqual({ time: '22:30:00', day: 'Thu 31 Dec' })
  expect(clockOf('yesterday')).toBeNull()
})

test('a silent hub is named with its silence and with the time of its figures', () => {
  const stale = { link: 'stale', silent_s: 20, now: NOW } as const
  expect(linkWords(stale)).toBe('No answer for 20 s')
  expect(linkSentence(stale)).toBe('The hub does not answer. The figures are of 18:42:07. The page keeps retrying.')
  expect(linkWords({ ...stale, silent_s: null })).toBe('No answer')
  expect(linkSentence({ ...stale, now: '' })).toContain('are of its last report')
})

test('a live hub needs no sentence, and polling has one', () => {
  const words = (['connecting', 'live', 'polling'] as const).map((link) => {
    const seen = { link, silent_s: 1, now: NOW }
    return [linkWords(seen), linkSentence(seen) !== '']
  })
  expect(words).toEqual([['Connecting', false], ['Live', false], ['Polling', true]])
})
