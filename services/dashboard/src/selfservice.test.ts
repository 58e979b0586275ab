import { expect, test } from 'vitest'

import { filled, names, receiveCommand, requestIn, type OwnSite } from './selfservice'

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
