import { expect, test } from 'vitest'

import { addressOf, pagesFor, routeOf, titleOf } from './route'

test('an address is read back as it was written', () => {
  for (const name of ['NGRID', 'IDS|DDPLUS', 'a/b?c#d%', 'Wörter']) {
    const read = routeOf(addressOf('feeds', name, { hours: '24', none: '', nothing: null }))
    expect([read.page, read.name, [...read.query]]).toEqual(['feeds', name, [['hours', '24']]])
  }
  expect(addressOf('now')).toBe('#/')
  expect(addressOf('latency', null, { site: 'unl.edu', feed: 'NGRID' })).toBe('#/latency?site=unl.edu&feed=NGRID')
})

test('an unknown address is no page, and old addresses still work', () => {
  for (const hash of ['', '#', '#/']) expect(routeOf(hash).page).toBe('now')
  expect(routeOf('#/nothing/here%20at%20all?x=1')).toMatchObject({ page: 'none', name: 'nothing/here at all' })
  expect(titleOf(routeOf('#/nonsense'))).toBe('Page not found')
  expect(routeOf('#latency=IDS%7CDDPLUS').query.get('feed')).toBe('IDS|DDPLUS')
  expect(routeOf('#/trace/path%2Fof%20a%20product%231')).toMatchObject({
    page: 'products',
    name: 'path/of a product#1',
  })
  expect(routeOf('#/feeds/%E0%A4%A').name).toBe('%E0%A4%A')
})

test('everybody has the pages of their rights', () => {
  const pages = (...scopes: string[]) => pagesFor(scopes).map((link) => link.page)
  expect(pages('latency')).toEqual(['latency', 'tree', 'volume'])
  expect(pages('latency', 'read')).not.toContain('users')
  expect(pages('latency', 'read', 'operate', 'admin')).toHaveLength(11)
  expect(pages('details')).toEqual(['circuits', 'bridges', 'map', 'relays'])
})

test('a title names what is looked at', () => {
  expect(titleOf(routeOf('#/feeds/NGRID'))).toBe('NGRID – Feeds')
  expect(titleOf(routeOf('#/'))).toBe('Now')
})
