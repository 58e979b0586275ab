import { expect, test } from 'vitest'
import { factsOf, linksOf } from './facts'
import { shownOf } from './folding'
import type { NetEdge, NetNode } from './graph/model'
import { networkOf } from './graph/network'
import { connectionState, hubState, statesOf } from './graph/nodestates'
import { feedOf, legOf, overviewOf, siteOf, sourcesOf, takes } from './graph/samples'
import { arrivalOf, countsText, feedsText, labelOf, nodeLine, sentenceOf } from './nodewords'

const EDGE: NetEdge = {
  ...{ from: 'hub', to: 'site~a', way: 'unicast', feeds: ['NGRID'], circuits: [] },
  ...{ rate_bps: null, isLive: true },
}

test('a label has the transport, its circuits, and the rate if one is measured', () => {
  expect(labelOf(EDGE)).toBe('unicast')
  expect(labelOf({ ...EDGE, rate_bps: 960e6 })).toBe('unicast, 960 Mb/s')
  expect(labelOf({ ...EDGE, way: 'static-circuit', circuits: [7] })).toBe('circuit 7')
  expect(labelOf({ ...EDGE, way: 'multicast', circuits: [7, 8] })).toBe('multicast on 2 circuits')
  expect(labelOf({ ...EDGE, isLive: false, rate_bps: 1 })).toBe('unicast, planned')
  expect(labelOf({ ...EDGE, from: 'source~x', to: 'hub', isLive: false })).toBe('unicast, no link')
  expect(labelOf({ ...EDGE, way: 'not-sent' })).toBe('not sent yet')
  expect(labelOf({ ...EDGE, way: 'not-sent', feeds: [] })).toBe('no subscriptions')
  expect(labelOf({ ...EDGE, to: 'relay~x', way: 'not-sent', feeds: [] })).toBe('no site now')
})

test('an edge in words says which feeds come from where', () => {
  const nameOf = () => 'hub.edu'
  expect(arrivalOf({ ...EDGE, rate_bps: 5e6 }, nameOf)).toBe('NGRID by unicast from hub.edu, 5.00 Mb/s')
  expect(arrivalOf({ ...EDGE, feeds: [] }, nameOf)).toBe('unicast from hub.edu')
  expect(arrivalOf({ ...EDGE, way: 'not-sent' }, nameOf)).toBe('NGRID: not sent yet')
  expect(feedsText(['A', 'B', 'C', 'D'])).toBe('4 feeds')
})

test('the sentence of a node has every fact once', () => {
  const network = networkOf(sourcesOf({ sites: [siteOf('a', { organisation: 'University' })] }))
  const { items, edges } = shownOf(network, new Map(), null)
  const nameOf = (id: string) => network.nodes.get(id)?.name ?? id
  const words = items.map((item) => sentenceOf(item, edges.filter(({ to }) => to === item.node.id), nameOf))
  expect(words).toEqual([
    'hub, this hub, 1 site: 1 not measured',
    'a, connected, University; NGRID by unicast from hub',
  ])
  expect(items.map(({ node }) => nodeLine(node))).toEqual(['this hub', 'connected'])
  expect(countsText([{ mark: 'critical', sites: 1 }, { mark: 'within', sites: 2 }])).toBe(
    '3 sites: 1 down, 2 within the objectives',
  )
})

test('states are those of the map; a relay that is connected has no latency to wait for', () => {
  const seen = (site: string, state: string, relay = false) => ({ site, state, relay, organisation: '', feeds: [] })
  const sites = [seen('a', 'connected'), seen('r', 'connected', true), seen('new', 'never-enrolled'), seen('x', 'away')]
  const states = statesOf(overviewOf({ sites }), null)
  expect([...states].map(([name, { mark, words }]) => [name, mark, words])).toEqual([
    ['a', 'unknown', 'not measured'],
    ['r', 'within', 'connected'],
    ['new', 'never', 'never connected'],
    ['x', 'critical', 'down'],
  ])
  expect(statesOf(null, null).size).toBe(0)
  expect(connectionState({ connected: false }).mark).toBe('critical')
})

test('the hub is as well as its node', () => {
  const hub = (running: boolean, restarts: number) => hubState(overviewOf({ hub: { node: { running, restarts } } }))
  expect(hubState(null)).toBeNull()
  expect(hub(true, 0)).toEqual({ mark: 'within', words: 'node runs' })
  expect(hub(true, 1)?.words).toBe('node runs, 1 restart')
  expect(hub(false, 0)?.mark).toBe('critical')
})

test('the card has the facts that the hub knows', () => {
  const tree = {
    upstreams: [{ upstream: 'national', connected: false, feeds: [] }],
    sites: [siteOf('a', { feeds: [takes('NGRID', 'multicast')] })],
  }
  const seen = { site: 'a', round_trip_ms: 12, path: { loss: null }, behind_products: null, last_receipt: null }
  const overview = overviewOf({
    feeds: [feedOf('NGRID', legOf(1, 'multicast', ['a'], { group: '239.0.0.1', rate_bps: 20e6 }))],
    sites: [{ ...seen, feeds: [] }],
    throughput: { out_bps: 3e6 },
    upstreams: [{ upstream: 'national', since: '2026-03-14T15:07:26Z', reason: 'refused' }],
  })
  const network = networkOf(sourcesOf(tree, { overview }))
  const facts = (id: string) => Object.fromEntries(factsOf(network.nodes.get(id) as NetNode, network, overview))
  expect(facts('site~a')).toMatchObject({ Feeds: 'NGRID', 'Round trip': '12.0 ms', 'Loss on the path': '–' })
  expect(facts('group~239.0.0.1')).toMatchObject({
    'Below it': '1 site: 1 not measured',
    'Pace in the plan': '20.0 Mb/s',
  })
  expect(facts('hub')['Sends now']).toBe('3.00 Mb/s')
  expect(facts('source~national')).toMatchObject({ Reason: 'refused' })
  expect(factsOf(network.nodes.get('site~a') as NetNode, network, null)).toEqual([['Feeds', 'NGRID']])
})

test('links lead to pages that the reader may open', () => {
  const node = { id: 'site~a', kind: 'site', name: 'a', feeds: [] } as unknown as NetNode
  expect(linksOf(node, ['latency']).map(({ href }) => href)).toEqual(['#/latency?site=a'])
  expect(linksOf(node, ['latency', 'read']).map(({ text }) => text)).toEqual(['Open the site', 'Show latency'])
  expect(linksOf({ ...node, kind: 'group', feeds: ['NGRID'] }, ['read'])[0]?.href).toBe('#/feeds/NGRID')
  expect(linksOf({ ...node, kind: 'relay' }, ['read'])).toEqual([])
})
