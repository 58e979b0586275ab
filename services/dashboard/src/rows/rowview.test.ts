import { expect, test } from 'vitest'

import { isFiltered, queryOf, resorted, toggled, unfiltered, viewOf } from './rowview'

const PLAIN = { sort: 'class', choices: ['class', 'transport'] }
const of = (query: string) => viewOf(new URLSearchParams(query), PLAIN)

test('an empty address is the plain view, which leaves the address empty', () => {
  const view = of('')
  expect(view).toMatchObject({ text: '', sort: 'class', isDescending: false, states: [], row: null })
  expect(Object.values(queryOf(view, PLAIN)).filter(Boolean)).toEqual([])
  expect(isFiltered(view)).toBe(false)
})

test('the address reproduces the view', () => {
  const view = of('q=ng&sort=-p99&state=late,within&class=grid&row=IDS%7CDDPLUS')
  expect(view).toEqual({
    text: 'ng',
    sort: 'p99',
    isDescending: true,
    states: ['late', 'within'],
    choices: { class: 'grid', transport: '' },
    row: 'IDS|DDPLUS',
  })
  const again = Object.entries(queryOf(view, PLAIN)).filter((one): one is [string, string] => Boolean(one[1]))
  expect(of(new URLSearchParams(again).toString())).toEqual(view)
  expect(isFiltered(view)).toBe(true)
  expect(isFiltered(unfiltered(view))).toBe(false)
  expect(unfiltered(view)).toMatchObject({ sort: 'p99', row: 'IDS|DDPLUS' })
})

test('a header orders by its column, and again the other way round', () => {
  expect(resorted(of(''), 'p99', true)).toEqual({ sort: 'p99', isDescending: true })
  expect(resorted(of('sort=-p99'), 'p99', true)).toEqual({ sort: 'p99', isDescending: false })
  expect(resorted(of(''), 'feed', false)).toEqual({ sort: 'feed', isDescending: false })
})

test('a chip adds its state and takes it away', () => {
  expect(toggled([], 'late')).toEqual(['late'])
  expect(toggled(['late', 'down'], 'late')).toEqual(['down'])
})
