import { afterEach, expect, test, vi } from 'vitest'

import { differences, linkIn, providerAddress, refusalIn, signOut, useLink, whoAmI, type Change } from './access'

afterEach(() => vi.unstubAllGlobals())

test.each([
  ['#welcome=dbl_a-b_C9', { kind: 'welcome', secret: 'dbl_a-b_C9' }],
  ['#invitation=dbl_x', { kind: 'invitation', secret: 'dbl_x' }],
  ['#sign-in=dbl_x', { kind: 'sign-in', secret: 'dbl_x' }],
  ['#welcome=dbl_x&more', null],
  ['#/trace/welcome=dbl_x', null],
  ['', null],
])('the address %s carries %o', (hash, expected) => expect(linkIn(hash)).toEqual(expected))

test.each([
  ['welcome', { link: 'dbl_x', user: 'anna', password: 'secret' }],
  ['invitation', { link: 'dbl_x', password: 'secret' }],
  ['sign-in', { link: 'dbl_x' }],
] as const)('a link of kind %s sends what it needs', async (kind, expected) => {
  const asked = vi.fn((_path: string, _request: RequestInit) => Promise.resolve(new Response('{}', { status: 201 })))
  vi.stubGlobal('fetch', asked)
  await useLink({ kind, secret: 'dbl_x' }, 'anna', 'secret')
  expect(asked.mock.calls[0]?.[0]).toBe('./v1/session/link')
  expect(JSON.parse(String(asked.mock.calls[0]?.[1].body))).toEqual(expected)
})

test.each([
  ['#sign-in-refused=no-group', 'no-group'],
  ['#sign-in-refused=<b>', null],
  ['#sign-in-refused=', null],
  ['#sites/unl.edu', null],
])('the address %s carries the refusal %o', (hash, expected) => expect(refusalIn(hash)).toBe(expected))

test('a sign-in at the provider returns to the place on the page', () => {
  expect(providerAddress('#sites/unl.edu?days=3')).toBe('./v1/session/oidc?at=sites%2Funl.edu%3Fdays%3D3')
  expect(providerAddress('#sign-in-refused=expired')).toBe('./v1/session/oidc?at=')
  expect(providerAddress('')).toBe('./v1/session/oidc?at=')
})

test('signing out leads on to the provider where the hub says so', async () => {
  const page = 'https://login.example/logout'
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ continue_at: page }), { status: 200 })))
  await expect(signOut()).resolves.toBe(page)
})

test('a refusal is thrown as its sentence', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('{"detail":"try again in 60 s"}', { status: 429 })))
  await expect(whoAmI()).rejects.toThrow('try again in 60 s')
  vi.stubGlobal('fetch', () => Promise.resolve(new Response('<html>', { status: 502 })))
  await expect(whoAmI()).rejects.toThrow('502')
})

test('a change is shown as its differences', () => {
  const change: Change = {
    number: 1,
    at: '',
    who: 'anna',
    role: 'operator',
    peer: '',
    action: 'changed',
    kind: 'feed',
    subject: 'NGRID',
    before: { hours: 2, allow: [] },
    after: { hours: 6, allow: [] },
  }
  expect(differences(change)).toEqual([{ name: 'hours', before: '2', after: '6' }])
  expect(differences({ ...change, before: null, after: { name: 'x', contact: '' } })).toEqual([
    { name: 'name', before: '', after: 'x' },
  ])
})
