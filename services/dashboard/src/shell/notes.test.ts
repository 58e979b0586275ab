import { expect, test } from 'vitest'

import { recorded } from '../fixtures/recorded'
import { notesOf } from './notes'

test('the rail counts feeds and sites, and marks the worst severity with its count', () => {
  expect(notesOf(recorded(), 'live')).toEqual({
    now: { text: '1', state: 'critical' },
    feeds: { text: '6' },
    sites: { text: '7' },
  })
})

test('a hub without incidents is marked as such only while it answers and has sites', () => {
  const now = (changes: Parameters<typeof recorded>[0], link: 'live' | 'stale') => notesOf(recorded(changes), link).now
  expect(now({ faults: [] }, 'live')).toEqual({ text: '', state: 'within' })
  expect(now({ faults: [] }, 'stale')).toEqual({ text: '', state: 'unknown' })
  expect(now({ faults: [], sites: [] }, 'live')).toEqual({ text: '', state: 'unknown' })
  expect(now({}, 'stale')).toEqual({ text: '', state: 'unknown' })
})
