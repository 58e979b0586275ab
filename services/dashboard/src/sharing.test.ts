import { expect, test } from 'vitest'

import { recorded } from './fixtures/recorded'
import { shared } from './sharing'

test('what is the same stays the same object', () => {
  const shown = recorded()
  const again = shared(shown, structuredClone(shown))
  expect(again).toBe(shown)
})

test('only the row that changed is another one, and its parts that did not are not', () => {
  const shown = recorded()
  const arrived = structuredClone(shown)
  const changed = arrived.feeds[2]
  if (!changed) throw new Error('the recording has fewer feeds')
  changed.products += 1
  const made = shared(shown, arrived)
  expect(made).toEqual(arrived)
  expect(made.sites).toBe(shown.sites)
  made.feeds.forEach((feed, place) =>
    place === 2 ? expect(feed).not.toBe(shown.feeds[place]) : expect(feed).toBe(shown.feeds[place]),
  )
  expect(made.feeds[2]?.latency).toBe(shown.feeds[2]?.latency)
})

test('a row that is gone does not change the others', () => {
  const shown = recorded()
  const made = shared(shown, structuredClone({ ...shown, sites: shown.sites.slice(1) }))
  expect(made.sites).toEqual(shown.sites.slice(1))
  made.sites.forEach((site, place) => expect(site).toBe(shown.sites[place + 1]))
})

test('rows without a name, or with the name of another, are found by their place', () => {
  const rows = [
    { site: null, title: 'a' },
    { site: null, title: 'b' },
    { site: 'x', title: 'c' },
    { site: 'x', title: 'd' },
  ]
  expect(shared(rows, structuredClone(rows))).toBe(rows)
  const made = shared(rows, structuredClone([...rows.slice(0, 3), { site: 'x', title: 'e' }]))
  expect(made[3]).toEqual({ site: 'x', title: 'e' })
  made.slice(0, 3).forEach((row, place) => expect(row).toBe(rows[place]))
})

test('values of another kind replace each other', () => {
  expect(shared(null, { a: [1] })).toEqual({ a: [1] })
  expect(shared({ a: [1, 2] }, { a: [1] })).toEqual({ a: [1] })
  expect(shared({ a: 1, b: 2 }, { a: 1 })).toEqual({ a: 1 })
  expect(shared({ a: 1 }, { a: 1, b: undefined })).toEqual({ a: 1, b: undefined })
  expect(shared([1], null)).toBeNull()
})
