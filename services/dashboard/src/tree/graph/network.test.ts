import { expect, test } from 'vitest'
import type { NetEdge, Network } from './model'
import { networkOf } from './network'
import { feedOf, large, legOf, overviewOf, siteOf, sourcesOf, takes, tunnelTo } from './samples'

function edgesOf(network: Network): string[] {
  return network.edges.map((edge) => `${edge.from} > ${edge.to} ${edge.way} ${edge.feeds.join('+')}`).toSorted()
}

function edgeTo(network: Network, to: string): NetEdge | undefined {
  return network.edges.find((edge) => edge.to === to)
}

function relay(name: string, connected = true) {
  return { relay: name, connected, sites: [] }
}

test('sources lead to the hub, the hub to its sites; a site has one edge for each transport', () => {
  const feeds = [takes('NGRID'), takes('WARN'), takes('SAT', 'static-circuit')]
  const upstreams = [{ upstream: 'national', connected: false, feeds: ['NGRID'] }]
  const network = networkOf(sourcesOf({ upstreams, sites: [siteOf('a', { feeds })] }))
  expect(edgesOf(network)).toEqual([
    'hub > site~a static-circuit SAT',
    'hub > site~a unicast NGRID+WARN',
    'source~national > hub unicast NGRID',
  ])
  expect([...network.nodes.values()].map(({ id, layer }) => [id, layer])).toEqual([
    ['source~national', 0],
    ['hub', 1],
    ['site~a', 2],
  ])
  expect(network.nodes.get('source~national')).toMatchObject({ mark: 'critical', words: 'not connected' })
})

test('a connected site is not green: only the latency of the hub makes it so', () => {
  const tree = { sites: [siteOf('a'), siteOf('b'), siteOf('gone', { connected: false })] }
  const states = new Map([['b', { mark: 'within', words: 'within the objectives' } as const]])
  const network = networkOf(sourcesOf(tree, { states }))
  const marks = ['a', 'b', 'gone'].map((name) => network.nodes.get(`site~${name}`)?.mark)
  expect(marks).toEqual(['unknown', 'within', 'critical'])
  expect(network.nodes.get('hub')?.mark).toBeNull()
})

test('a way over two relays goes hop by hop, with the ordered circuit between them', () => {
  const site = siteOf('a', { via: ['campus', 'core'], circuit: 7 })
  const network = networkOf(
    sourcesOf(
      { relays: [relay('campus'), relay('core'), relay('spare', false)], sites: [site] },
      { relays: [tunnelTo('campus', 'a', 960e6), tunnelTo('campus', 'a', 5e6, true)] },
    ),
  )
  expect(edgesOf(network)).toEqual([
    'hub > relay~core unicast NGRID',
    'hub > relay~spare not-sent ',
    'relay~campus > site~a unicast NGRID',
    'relay~core > relay~campus dynamic-circuit NGRID',
  ])
  expect(edgeTo(network, 'relay~campus')?.circuits).toEqual([7])
  expect(edgeTo(network, 'site~a')?.rate_bps).toBe(960e6)
  expect(edgeTo(network, 'relay~core')?.rate_bps).toBeNull()
  expect(network.nodes.get('site~a')).toMatchObject({ parent: 'relay~campus', layer: 4 })
})

test('with more than two relays the ordered circuit stands where it ends', () => {
  const tree = {
    relays: [relay('one'), relay('two'), relay('three')],
    sites: [siteOf('a', { via: ['one', 'two', 'three'], circuit: 7 })],
  }
  const circuits = [{ circuit: 7, sites: ['two', 'three'], used_out_bps: 0 }]
  const network = networkOf(sourcesOf(tree, { overview: overviewOf({ circuits }) }))
  expect(edgeTo(network, 'relay~two')?.circuits).toEqual([7])
  expect(edgeTo(network, 'relay~one')?.circuits).toEqual([])
  expect(networkOf(sourcesOf(tree)).edges.flatMap((edge) => edge.circuits)).toEqual([])
})

test('a relay says for which sites it is, though it serves none now', () => {
  const relays = [
    { relay: 'campus', connected: true, sites: ['oslo', 'bergen'] },
    { relay: 'core', connected: true, sites: ['a', 'b', 'c', 'd'] },
  ]
  const network = networkOf(sourcesOf({ relays }))
  expect(network.nodes.get('relay~campus')?.detail).toBe('relay for oslo, bergen')
  expect(network.nodes.get('relay~core')?.detail).toBe('relay for 4 sites')
})

test('legs with the same sites behind the same relay are one group', () => {
  const feeds = ['NGRID', 'WARN'].map((feed) => takes(feed, 'multicast', 'campus'))
  const overview = overviewOf({
    feeds: ['NGRID', 'WARN'].map((feed, at) =>
      feedOf(feed, legOf(at, 'multicast', ['a', 'b'], { relay: 'campus', group: `239.0.0.${at}`, port: 5000 })),
    ),
  })
  const tree = { relays: [relay('campus')], sites: [siteOf('a', { feeds }), siteOf('b', { feeds })] }
  const network = networkOf(sourcesOf(tree, { overview }))
  expect(edgesOf(network)).toEqual([
    'group~239.0.0.0:5000 > site~a multicast NGRID+WARN',
    'group~239.0.0.0:5000 > site~b multicast NGRID+WARN',
    'hub > relay~campus unicast NGRID+WARN',
    'relay~campus > group~239.0.0.0:5000 multicast NGRID+WARN',
  ])
  expect(network.nodes.get('group~239.0.0.0:5000')).toMatchObject({
    name: '2 groups',
    parent: 'relay~campus',
    mark: 'unknown',
  })
  const relays = [{ ...tunnelTo('campus', 'a', 1), fan_out: 'unicast' as const }]
  const byUnicast = networkOf(sourcesOf(tree, { overview, relays }))
  expect(edgesOf(byUnicast)).toContain('relay~campus > site~a unicast NGRID+WARN')
})

test('groups that share an address and have different sites are two nodes', () => {
  const feeds = ['NGRID', 'WARN'].map((feed, at) =>
    feedOf(feed, legOf(1, 'multicast', [`s${at}`], { group: '239.0.0.1', port: 5000 })),
  )
  const sites = ['NGRID', 'WARN'].map((feed, at) => siteOf(`s${at}`, { feeds: [takes(feed, 'multicast')] }))
  const network = networkOf(sourcesOf({ sites }, { overview: overviewOf({ feeds }) }))
  expect(network.children.get('hub')?.map(({ id }) => id)).toEqual([
    'group~239.0.0.1:5000',
    'group~239.0.0.1:5000-1',
  ])
})

test('a circuit has the rate that the hub measured, if one site alone uses it', () => {
  const circuits = [
    { circuit: 3, sites: ['a'], used_out_bps: 40e6 },
    { circuit: 4, sites: ['b', 'c'], used_out_bps: 40e6 },
  ]
  const legs = ['a', 'b'].map((name, at) =>
    legOf(at, 'static-circuit', [name], { circuits: [{ site: name, circuit: 3 + at }] }),
  )
  const sites = ['a', 'b'].map((name) => siteOf(name, { feeds: [takes('NGRID', 'static-circuit')] }))
  const overview = overviewOf({ circuits, feeds: [feedOf('NGRID', ...legs)] })
  const network = networkOf(sourcesOf({ sites }, { overview }))
  expect(edgeTo(network, 'site~a')).toMatchObject({ circuits: [3], rate_bps: 40e6 })
  expect(edgeTo(network, 'site~b')).toMatchObject({ circuits: [4], rate_bps: null })
  expect(edgeTo(networkOf(sourcesOf({ sites }, { overview, feed: 'NGRID' })), 'site~a')?.rate_bps).toBeNull()
})

test('a feed that is sent by another transport than planned is not on the circuit of the plan', () => {
  const leg = legOf(1, 'static-circuit', ['a'], { circuits: [{ site: 'a', circuit: 3 }] })
  const overview = overviewOf({ feeds: [feedOf('NGRID', leg)] })
  const network = networkOf(sourcesOf({ sites: [siteOf('a')] }, { overview }))
  expect(edgeTo(network, 'site~a')).toMatchObject({ way: 'unicast', circuits: [] })
})

test('a site that is away is drawn by its plan, a site without subscriptions without any', () => {
  const away = siteOf('away', { connected: false, feeds: [takes('NGRID', null)] })
  const overview = overviewOf({ feeds: [feedOf('NGRID', legOf(1, 'unicast', ['away']))] })
  const network = networkOf(sourcesOf({ sites: [away, siteOf('none', { feeds: [] })] }, { overview }))
  expect(edgeTo(network, 'site~away')).toMatchObject({ way: 'unicast', isLive: false })
  expect(edgeTo(network, 'site~none')).toMatchObject({ way: 'not-sent', feeds: [] })
})

test('a feed leaves those sites, relays and sources that have to do with it', () => {
  const upstreams = [
    { upstream: 'all', connected: true, feeds: [] },
    { upstream: 'other', connected: true, feeds: ['WARN'] },
  ]
  const sites = [siteOf('a'), siteOf('b', { feeds: [takes('WARN')] }), siteOf('c', { feeds: [] })]
  const network = networkOf(sourcesOf({ upstreams, relays: [relay('spare')], sites }, { feed: 'NGRID' }))
  expect([...network.nodes.keys()]).toEqual(['source~all', 'hub', 'site~a'])
})

test('LDM sources stand beside upstream hubs', () => {
  const ldm_sources = [{ source: 'idd', feeds: 'ANY', upstreams: [{ connected: false }, { connected: true }] }]
  const network = networkOf(sourcesOf({}, { overview: overviewOf({ ldm_sources }) }))
  expect(network.nodes.get('ldm~idd')).toMatchObject({ detail: 'LDM, ANY', mark: 'within', layer: 0 })
  expect(edgeTo(network, 'hub')).toMatchObject({ way: 'ldm', isLive: true })
})

test('relays that lead in a circle still have one place each', () => {
  const sites = [siteOf('a', { via: ['one', 'two'] }), siteOf('b', { via: ['two', 'one'] })]
  const network = networkOf(sourcesOf({ relays: [relay('one'), relay('two')], sites }))
  expect(network.nodes.get('relay~one')).toMatchObject({ parent: 'hub', layer: 2 })
  expect(network.nodes.get('relay~two')).toMatchObject({ parent: 'hub', layer: 2 })
})

test('above 30 sites that get everything from the hub become a group', () => {
  const network = networkOf(large(500, 30))
  expect(network.nodes.get('direct')).toMatchObject({ parent: 'hub', mark: 'unknown' })
  expect(network.children.get('direct')).toHaveLength(250)
  expect(network.children.get('hub')?.map(({ kind }) => kind)).toEqual([...Array<string>(10).fill('group'), 'direct'])
  expect(edgeTo(network, 'direct')?.feeds).toHaveLength(30)
})
