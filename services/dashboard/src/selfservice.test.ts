import { expect, test } from 'vitest'

import {
  filled,
  isKept,
  names,
  receiveCommand,
  requestIn,
  standing,
  type Credential,
  type OwnSite,
} from './selfservice'

test.each([
  ['#request', { secret: null }],
  ['#request=dbq_a-b_C', { secret: 'dbq_a-b_C' }],
  ['#request=dbl_x', null],
  ['#/requests', null],
])('the address %s asks for %o', (hash, expected) => expect(requestIn(hash)).toEqual(expected))

test('feeds are read whatever stands between them', () => {
  expect(names(' NGRID, IDS|DDPLUS;NEXRAD2\nX ')).toEqual(['NGRID', 'IDS|DDPLUS', 'NEXRAD2', 'X'])
  expect(names(' ')).toEqual([])
})

test('an empty field asks for nothing', () => {
  expect(filled({ kind: '', feed: 'NGRID', site: ' ' })).toEqual({ feed: 'NGRID' })
})

test.each([
  [['0.0.0.0:7370'], 'hub.example:7370'],
  [['[::]:7370'], 'hub.example:7370'],
  [['192.0.2.7:7370'], '192.0.2.7:7370'],
  [[], 'hub.example:7370'],
])('a hub that listens on %o is called at %s', (sites_address, expected) => {
  const site = { site: 'unl.edu', sites_address } as unknown as OwnSite
  expect(receiveCommand(site, { hostname: 'hub.example' })).toContain(`--hub ${expected} --token-file unl.edu.token`)
})

const credential: Credential = {
  sha256: 'c',
  site: 'unl.edu',
  replaces: null,
  created_at: '2026-01-01T00:00:00Z',
  peer: '192.0.2.7:1',
  expires_at: '2026-04-01T00:00:00Z',
  revoked_at: null,
  replaced_at: null,
  asked_at: null,
  renews_at: '2026-03-02T00:00:00Z',
}

test.each<[Partial<Credential>, string, boolean]>([
  [{}, 'expires 2026-04-01 00:00, in 31 days; replaced automatically from 2026-03-02', true],
  [
    { asked_at: '2026-02-28T00:00:00Z' },
    'expires 2026-04-01 00:00, in 31 days; replaced as soon as its receiver is connected',
    true,
  ],
  [{ expires_at: null }, 'does not expire', true],
  [{ expires_at: '2026-02-01T00:00:00Z' }, 'expired 2026-02-01 00:00; its receiver needs a new enrolment token', true],
  [{ replaced_at: '2026-02-01T10:20:30Z' }, 'replaced 2026-02-01 10:20', false],
  [{ revoked_at: '2026-02-01T10:20:30Z' }, 'revoked 2026-02-01 10:20', false],
])('a credential with %o is %s', (given, expected, kept) => {
  const one = { ...credential, ...given }
  expect(standing(one, new Date('2026-03-01T00:00:00Z'))).toBe(expected)
  expect(isKept(one)).toBe(kept)
})
