import { expect, test } from 'vitest'

import { recorded } from './fixtures/recorded'
import { parseOverview, type Feed, type SiteFeed } from './overview'
import type { HostReading } from './selfservice'
import {
  behindOf,
  circuitsInOrder,
  factsOf,
  faultsInOrder,
  feedsInOrder,
  hearingOf,
  newer,
  nextSteps,
  notConsidered,
  ownClockOf,
  lineOf,
  priorityOf,
  saving,
  siteState,
  toneOf,
  transportsOf,
  upstreamsInOrder,
} from './view'

test('an overview that was overtaken is dropped', () => {
  const shown = recorded()
  const late = recorded({ now: '2026-03-14T15:09:20Z' })
  const next = recorded({ now: '2026-03-14T15:09:27Z' })
  expect(newer(null, late)).toBe(late)
  expect(newer(shown, late)).toBe(shown)
  expect(newer(shown, next)).toEqual(next)
  expect(newer(shown, next).sites).toBe(shown.sites)
})

test('a hub that was started again is shown even if its clock went back', () => {
  const shown = recorded()
  const again = recorded({ now: '2026-03-14T15:00:00Z', hub: { ...shown.hub, started_at: '2026-03-14T14:59:59Z' } })
  expect(newer(shown, again)).toBe(again)
})

test('the worst fault and the most urgent feed come first', () => {
  const { faults, feeds } = recorded()
  expect(faultsInOrder(faults).map((fault) => fault.feed ?? fault.site)).toEqual(['noaa.gov', 'CONDUIT'])
  expect(feedsInOrder(feeds).map((feed) => feed.feed)).toEqual([
    'WARNINGS',
    'IDS|DDPLUS',
    'NEXRAD2',
    'NGRID',
    'CONDUIT',
    'SATELLITE',
  ])
})

test('of equally bad faults the order is the one of the hub', () => {
  const [fault] = recorded().faults
  expect(fault).toBeDefined()
  if (!fault) return
  const cause = { ...fault, sentence: 'a disk is full', at: '2026-03-14T15:00:00Z' }
  const follows = { ...fault, sentence: 'nothing comes out', at: '2026-03-14T15:01:00Z' }
  const light = { ...fault, sentence: 'it may be slow', severity: 'information' as const }
  const shown = faultsInOrder([light, cause, follows]).map((one) => one.sentence)
  expect(shown).toEqual(['a disk is full', 'nothing comes out', 'it may be slow'])
})

test('a feed of an unknown class goes last, not away', () => {
  const [one, ...others] = recorded().feeds
  expect(one).toBeDefined()
  if (one) expect(feedsInOrder([{ ...one, class: 'other' as Feed['class'] }, ...others]).at(-1)?.class).toBe('other')
})

test('the saving is that of the bytes, and shows when multicast cost more', () => {
  const { throughput } = recorded()
  expect(saving(throughput).share).toBeCloseTo(0.7607, 4)
  expect(saving({ ...throughput, egress_bytes: 120, unicast_equivalent_bytes: 100 })).toEqual({
    share: -0.2,
    bytes: -20,
  })
  expect(saving({ ...throughput, unicast_equivalent_bytes: 0, egress_bytes: 0 }).share).toBeNull()
})

test('the state of a site is one word', () => {
  const states = Object.fromEntries(recorded().sites.map((site) => [site.site, siteState(site)]))
  expect(states).toEqual({
    'unl.edu': 'up to date',
    'wisc.edu': 'up to date',
    'ucar.edu': 'catching up',
    'noaa.gov': 'away',
    'ou.edu': 'up to date',
    'new.example': 'never enrolled',
    'psu.edu': 'stands by',
  })
})

test('a site that stood by and left is away', () => {
  const site = recorded().sites.find((one) => one.site === 'psu.edu')
  expect(site).toBeDefined()
  if (!site) return
  expect(siteState({ ...site, state: 'away', connected: false })).toBe('away')
  expect(siteState({ ...site, state: 'connected', stand_by: false })).toBe('up to date')
})

test('the upstreams that are away come first', () => {
  const { upstreams } = recorded()
  expect(upstreamsInOrder(upstreams).map((one) => one.upstream)).toEqual(['noaaport', 'unidata'])
  const all = upstreams.map((one) => ({ ...one, connected: true })).toReversed()
  expect(upstreamsInOrder(all).map((one) => one.upstream)).toEqual(['noaaport', 'unidata'])
})

test('circuits that fail their feeds come first, then those that stand, then those that wait', () => {
  const { circuits } = recorded()
  expect(circuitsInOrder(circuits.toReversed()).map((one) => one.circuit)).toEqual([18, 17, 21])
  expect(['degraded', 'down', 'failed'].map(toneOf)).toEqual(['bad', 'bad', 'bad'])
  expect(['admitted', 'provisioning', 'verifying', 'ending', 'cancelling'].map(toneOf)).toEqual(Array(5).fill('quiet'))
})

test('the feeds of a site are grouped by transport', () => {
  const [site] = recorded().sites
  expect(site).toBeDefined()
  if (!site) return
  expect(transportsOf(site)).toEqual([
    ['multicast', ['NGRID', 'NEXRAD2']],
    ['unicast', ['IDS|DDPLUS', 'WARNINGS']],
  ])
  const unsent = site.feeds.map((feed) => ({ ...feed, transport: null as unknown as SiteFeed['transport'] }))
  expect(transportsOf({ ...site, feeds: unsent })).toEqual([['', ['NGRID', 'NEXRAD2', 'IDS|DDPLUS', 'WARNINGS']]])
})

test('an empty hub says each next step, a running one says none', () => {
  const { feeds, sites } = recorded()
  expect(nextSteps(recorded({ feeds: [], sites: [] }))).toEqual(['add-feed', 'add-site', 'subscribe', 'connect', 'put'])
  expect(nextSteps(recorded({ sites: sites.filter((site) => site.site === 'new.example') }))).toEqual(['connect'])
  expect(nextSteps(recorded({ feeds: feeds.map((feed) => ({ ...feed, products: 0 })) }))).toEqual(['put'])
  expect(nextSteps(recorded())).toEqual([])
})

test('what is no overview is refused with a sentence', () => {
  expect(() => parseOverview('[]')).toThrow('not an overview')
  expect(() => parseOverview('{"now": "2026-03-14T15:09:26Z", "hub": {}, "feeds": [], "sites": {}}')).toThrow(
    'lacks faults, status, incidents, throughput, sites, upstreams, circuits',
  )
  expect(() => parseOverview('<html>')).toThrow()
})

test('the path to a site shows only what was measured', () => {
  const paths = Object.fromEntries(recorded().sites.map((site) => [site.site, site.path]))
  const [deaf, unknown] = [paths['wisc.edu'], paths['new.example']]
  expect(deaf && factsOf(deaf)).toEqual([
    '84.0 Mb/s or more, cubic',
    '0.02 % resent',
    'circuit 4 active: 500 Mb/s, carries 496',
    'TCP profile overseas (canary): bbr, send buffer 8 MiB',
  ])
  expect(unknown && factsOf(unknown)).toEqual([])
})

test('whether a site receives multicast comes with the time, the reason and the next test', () => {
  const tried = {
    state: 'not-heard',
    feed: 'NGRID',
    at: '2026-03-14T15:02:11Z',
    again_at: '2026-03-14T15:32:11Z',
    reason: 'no querier',
  } as const
  const now = '2026-03-14T15:09:26Z'
  const why = 'no querier, next test at 15:32:11Z'
  expect(hearingOf(tried, now)).toEqual({ text: 'receives no multicast', why, tone: 'bad' })
  expect(hearingOf({ ...tried, state: 'too-slow', reason: '' }, now)).toMatchObject({
    text: 'too slow for multicast',
    why: 'next test at 15:32:11Z',
  })
  expect(hearingOf({ ...tried, state: 'heard' }, now)).toEqual({
    text: 'receives multicast',
    why: 'joined 7 min ago',
    tone: 'good',
  })
  expect(hearingOf({ ...tried, state: 'not-tried' }, now).tone).toBe('quiet')
  expect(hearingOf({ ...tried, state: 'not-allowed', reason: 'the operator serves it by unicast' }, now).text).toBe(
    'multicast not allowed',
  )
})

test("a site's own clock is shown with its daemon and the largest error", () => {
  const clock = { synchronised: true, daemon: 'chrony', error_ms: 1.25, estimated_error_ms: 0.1 }
  expect(ownClockOf(clock)).toBe('synchronised at the site (chrony), off by at most 1.3 ms')
  expect(ownClockOf({ ...clock, synchronised: false, daemon: null })).toBe(
    'not synchronised at the site (no daemon seen at the site)',
  )
})

test('the priority of a thread that reads a group is shown with its losses', () => {
  const reading = recordedReading()
  expect(priorityOf(reading)).toBe('real-time (20)')
  expect(priorityOf({ ...reading, demotions: 2 })).toBe('real-time (20), lost 2 times')
  expect(priorityOf({ ...reading, standing: 'lost', demotions: 1 })).toBe('normal until it pauses, lost 1 times')
  expect(priorityOf({ ...reading, standing: 'refused' })).toBe('normal, as real-time 20 was refused')
  expect(priorityOf({ ...reading, standing: 'normal', priority: null })).toBe('normal')
})

test('transports that are not considered are those of the figures with that name', () => {
  const figures = { mean_bps: 5, not_considered_rdma: 'no device', not_considered_mptcp: 'no use' }
  expect(notConsidered(figures)).toEqual([
    ['mptcp', 'no use'],
    ['rdma', 'no device'],
  ])
})

test('the line of a host is shown with the rate of the group that lost packets on it', () => {
  const line = { arrived_bps: 4_000_000, offered_bps: 40_000_000, packets: 3_300, lost: 2_970, windows: 7 }
  expect(lineOf({ ...recordedReading(), line })).toBe('4.00 of 40.0 Mb/s')
  expect(lineOf(recordedReading())).toBe('–')
})

function recordedReading(): HostReading {
  return {
    leg: 2,
    dropped: 17,
    asked_bytes: 65_536,
    granted_bytes: 131_072,
    needed_bytes: 5_000_000,
    limit_bytes: null,
    priority: 20,
    standing: 'real-time',
    demotions: 0,
    line: null,
    advice: null,
  }
}

test('a backlog is shown in products, bytes and age, with the lost products', () => {
  const backlogs = Object.fromEntries(recorded().sites.map((site) => [site.site, behindOf(site)]))
  expect(backlogs['unl.edu']).toBe('nothing')
  expect(backlogs['noaa.gov']).toMatch(/^4821 products, 241 MB, the oldest .+ old; lost 17 products$/)
  expect(backlogs['new.example']).toBe('–')
})
