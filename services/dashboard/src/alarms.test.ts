import { expect, test } from 'vitest'

import {
  aboutOf,
  begins,
  counted,
  heardBy,
  isAhead,
  objectiveInWords,
  shownAddress,
  silencedBy,
  utc,
  windowOf,
  worstFirst,
  type Judged,
  type Receiver,
  type Silence,
} from './alarms'

const SILENCE: Silence = {
  number: 1,
  until: '2026-01-31T14:00:00+00:00',
  by: 'anna',
  reason: '',
  kind: null,
  feed: null,
  site: null,
  begins: null,
  alarm_key: null,
}

test.each([
  [{}, 'all alarms'],
  [{ site: 'unl.edu' }, 'all alarms of unl.edu'],
  [{ kind: 'clock', site: 'unl.edu' }, 'clock alarms of unl.edu'],
  [{ feed: 'NGRID', site: 'unl.edu' }, 'all alarms of NGRID at unl.edu'],
])('a silence of %o is about %s', (about, expected) => {
  expect(aboutOf({ ...SILENCE, ...about } as Silence)).toBe(expected)
})

test('a window that lies ahead says both its ends, in UTC', () => {
  const ahead = { ...SILENCE, begins: '2026-01-31T13:00:00+01:00' }
  expect(windowOf(ahead)).toBe('2026-01-31 12:00 to 2026-01-31 14:00')
  expect(windowOf(SILENCE)).toBe('until 2026-01-31 14:00')
  expect(isAhead(ahead, new Date('2026-01-31T11:59:59Z'))).toBe(true)
  expect(isAhead(ahead, new Date('2026-01-31T12:00:00Z'))).toBe(false)
  expect(isAhead(SILENCE, new Date(0))).toBe(false)
})

test.each([
  ['mail', 'ops@unl.edu', 'ops@unl.edu'],
  ['webhook', 'https://chat.example/hook/secret', 'https://chat.example/…'],
  ['webhook', 'https://chat.example/?token=secret', 'https://chat.example/…'],
  ['alertmanager', 'http://am:9093', 'http://am:9093'],
  ['webhook', 'no url', 'webhook'],
] as const)('of a %s at %s is shown %s', (kind, address, expected) =>
  expect(shownAddress({ kind, address })).toBe(expected),
)

test('a receiver hears of what it names, or of all', () => {
  const all = { receiver: 'ops', kind: 'mail', address: 'a@b', kinds: [], feeds: [], sites: [], owner: null } as const
  const severities: Receiver['severities'] = ['critical', 'warning', 'information']
  expect(heardBy({ ...all, kinds: [], feeds: [], sites: [], severities })).toBe('all alarms')
  expect(heardBy({ ...all, kinds: [], feeds: [], sites: [], severities: ['critical'] })).toBe('all alarms (critical)')
  expect(heardBy({ ...all, kinds: ['clock', 'silence'], feeds: ['NGRID'], sites: [], severities })).toBe(
    'clock, silence alarms of NGRID',
  )
})

test('an objective says what the hub decides where it says nothing itself', () => {
  const of = { objective: 'NGRID/unl.edu', feed: 'NGRID', site: 'unl.edu' }
  const objective = { ...of, objective_ms: 2000, quantile: 0.95, minutes: 15 }
  expect(objectiveInWords(objective)).toBe('95 % within 2.00 s, over 15 min')
  expect(objectiveInWords({ ...objective, quantile: null, minutes: null })).toBe(
    'the default share within 2.00 s, over the default period',
  )
})

test('a moment in a field is one in UTC', () => {
  expect(begins('2026-01-31T12:00')).toEqual({ begins: '2026-01-31T12:00:00Z' })
  expect(begins('')).toEqual({})
  expect(utc('nonsense')).toBe('nonsense')
})

test('the worst comes first, of those the newest, with counts that leave the silenced apart', () => {
  const wrong: (Judged & { since: string })[] = [
    { severity: 'warning', silence: null, since: '2026-01-31T12:00:00Z' },
    { severity: 'critical', silence: SILENCE, since: '2026-01-31T11:00:00Z' },
    { severity: 'critical', silence: null, since: '2026-01-31T10:00:00Z' },
    { severity: 'warning', silence: null, since: '2026-01-31T13:00:00Z' },
  ]
  expect(worstFirst(wrong, (one) => one.since).map((one) => Number(one.since.slice(11, 13)))).toEqual([11, 10, 13, 12])
  expect(counted(wrong)).toBe('1 critical, 2 warning; 1 silenced')
  expect(wrong.map(silencedBy)).toEqual(['', 'silenced until 2026-01-31 14:00 UTC by anna', '', ''])
})
