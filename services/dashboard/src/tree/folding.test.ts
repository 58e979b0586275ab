import { expect, test } from 'vitest'
import { opened, shownOf, type Opened, type Shown } from './folding'
import { networkOf } from './graph/network'
import { large, siteOf, sourcesOf } from './graph/samples'

const BEGINNING: Opened = new Map()

function relayWith(sites: number) {
  const names = Array.from({ length: sites }, (_, at) => `s${at}`)
  const behind = names.map((name) => siteOf(name, { via: ['campus'], connected: name !== 's1' }))
  return networkOf(
    sourcesOf({ relays: [{ relay: 'campus', connected: true, sites: [] }], sites: [...behind, siteOf('direct.edu')] }),
  )
}

function idsOf(shown: Shown): string[] {
  return shown.items.map(({ node }) => node.id)
}

test('up to 30 sites of a relay are open, above that they begin folded', () => {
  expect(idsOf(shownOf(relayWith(30), BEGINNING, null))).toHaveLength(33)
  const folded = shownOf(relayWith(31), BEGINNING, null)
  expect(idsOf(folded)).toEqual(['hub', 'relay~campus', 'site~direct.edu'])
  expect(folded.items.map(({ isOpen }) => isOpen)).toEqual([null, false, null])
})

test('a folded parent counts its sites by state, the worst first, and its edges end there', () => {
  const { items, edges } = shownOf(relayWith(31), BEGINNING, null)
  expect(items[1]?.counts).toEqual([
    { mark: 'critical', sites: 1 },
    { mark: 'unknown', sites: 30 },
  ])
  expect(edges.map(({ from, to }) => [from, to]).toSorted()).toEqual([
    ['hub', 'relay~campus'],
    ['hub', 'site~direct.edu'],
  ])
})

test('the selected site is on screen though its parent is folded', () => {
  const shown = shownOf(relayWith(31), BEGINNING, 'site~s7')
  expect(idsOf(shown)).toEqual(['hub', 'relay~campus', 'site~s7', 'site~direct.edu'])
  expect(shown.edges).toContainEqual(expect.objectContaining({ from: 'relay~campus', to: 'site~s7' }))
})

test('an open parent shows 30 sites, the worst first, and more on request; folding hides them all', () => {
  const network = relayWith(70)
  const open = opened(network, BEGINNING, 'relay~campus', true)
  const shown = shownOf(network, open, null)
  expect(idsOf(shown).slice(1, 3)).toEqual(['relay~campus', 'site~s1'])
  expect(shown.items).toHaveLength(33)
  expect(shown.mores).toEqual([{ id: 'more~relay~campus', parent: 'relay~campus', sites: 40 }])
  const further = opened(network, open, 'relay~campus', true)
  expect(shownOf(network, further, null).mores[0]?.sites).toBe(10)
  const all = opened(network, further, 'relay~campus', true)
  expect(shownOf(network, all, null).mores).toEqual([])
  const folded = shownOf(network, opened(network, all, 'relay~campus', false), null)
  expect(folded.items).toHaveLength(3)
})

test('500 sites begin as ten groups and one node of direct sites', () => {
  const network = networkOf(large(500, 30))
  const shown = shownOf(network, BEGINNING, null)
  expect(shown.items.map(({ node, isOpen }) => [node.kind, isOpen])).toEqual([
    ['hub', null],
    ...Array.from({ length: 10 }, () => ['group', false]),
    ['direct', false],
  ])
  const open = opened(network, BEGINNING, 'direct', true)
  expect(shownOf(network, open, null).items.filter(({ node }) => node.kind === 'site')).toHaveLength(30)
})
