import { expect, test } from 'vitest'

import { addressByKey, entriesFor, keyOf, siblingsOf } from './sections'

const ADMINISTRATOR = ['read', 'latency', 'details', 'operate', 'admin']

test('an entry leads to the first page of its section that the user may see', () => {
  expect(entriesFor(ADMINISTRATOR, 'now').map((entry) => `${entry.title} ${entry.href}`)).toEqual([
    'Now #/',
    'Feeds #/feeds',
    'Sites #/sites',
    'Latency #/latency',
    'Products #/products',
    'Map #/map',
    'Network #/circuits',
    'Bridges #/bridges',
    'Admin #/requests',
  ])
  expect(entriesFor(['latency'], 'tree').map((entry) => entry.href)).toEqual(['#/latency', '#/tree'])
})

test('the section of the open page is open, and its entry is the page if it leads there', () => {
  const open = (page: Parameters<typeof entriesFor>[1]) => entriesFor(ADMINISTRATOR, page).filter((one) => one.isOpen)
  expect(open('tree')).toMatchObject([{ section: 'network', isPage: false }])
  expect(open('circuits')).toMatchObject([{ section: 'network', isPage: true }])
  expect(open('alarms')).toMatchObject([{ section: 'now' }])
  expect(open('none')).toEqual([])
})

test('a section of several pages lists them, one of a single page does not', () => {
  const titles = (scopes: string[], page: Parameters<typeof siblingsOf>[1]) =>
    siblingsOf(scopes, page).map((link) => link.title)
  expect(titles(ADMINISTRATOR, 'audit')).toEqual(['Requests', 'Users', 'Audit'])
  expect(titles(['latency'], 'volume')).toEqual(['Latency', 'Volume'])
  expect(titles(['latency'], 'tree')).toEqual([])
  expect(titles(ADMINISTRATOR, 'feeds')).toEqual([])
  expect(titles(ADMINISTRATOR, 'none')).toEqual([])
})

test('letters lead to the sections that the user has', () => {
  const entries = entriesFor(['read'], 'now')
  expect(['n', 'f', 's', 'p'].map((letter) => addressByKey(entries, letter))).toEqual([
    '#/',
    '#/feeds',
    '#/sites',
    '#/products',
  ])
  expect(['a', 'x', 'constructor'].map((letter) => addressByKey(entries, letter))).toEqual([null, null, null])
  expect(new Set(entriesFor(ADMINISTRATOR, 'now').map((entry) => keyOf(entry.section))).size).toBe(9)
})
