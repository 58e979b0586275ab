import { expect, test } from 'vitest'

import type { Incident } from '../api'
import { recorded } from '../fixtures/recorded'
import type { Feed } from '../overview'
import { found } from '../rows/ordering'
import { viewOf } from '../rows/rowview'
import type { LatencyRow } from '../selfservice'
import {
  FEED_COLUMNS,
  FEED_FILTERS,
  FEED_PLAIN,
  feedRows,
  sentenceOfFeed,
  shareOf,
  sitesOfFeed,
  totalOf,
} from './feedrows'

const { feeds, sites } = recorded()
const first = feeds[0] as Feed

function withP99(p99: number | null, count = 100): Feed {
  const distribution_ms = { ...first.latency.distribution_ms, p99, count }
  return { ...first, objective_ms: 2000, latency: { ...first.latency, distribution_ms } }
}

function incident(changes: Partial<Incident>): Incident {
  const about = { severity: 'warning', feed: first.feed, title: 'NGRID is late at snu.ac.kr' }
  return { ...about, over: false, silence: null, ...changes } as Incident
}

test('only a measured latency within the objective is within', () => {
  expect([withP99(500), withP99(4000), withP99(null, 0), withP99(-3)].map(shareOf)).toEqual([0.25, 2, null, null])
  const states = [withP99(500), withP99(4000), withP99(null, 0), withP99(-3)].map((it) => feedRows([it], [])[0]?.state)
  expect(states).toEqual(['within', 'late', 'unmeasured', 'unmeasured'])
})

test('open incidents of the feed make its state and sentence', () => {
  const late = incident({})
  const states = (...incidents: Incident[]) => feedRows([withP99(500)], incidents)[0]?.state
  expect(states(late)).toBe('warning')
  expect(states(late, incident({ severity: 'critical' }))).toBe('critical')
  expect(states(incident({ over: true }), incident({ feed: 'HDS' }))).toBe('within')
  const rows = feedRows([withP99(500)], [late, incident({ title: 'psu.edu is down' }), late])
  expect(sentenceOfFeed(rows[0]!)).toBe('NGRID is late at snu.ac.kr; psu.edu is down; 1 more incident.')
  const [quiet] = feedRows([withP99(500)], [])
  expect(sentenceOfFeed(quiet!)).toBe('p99 of the last hour is 500 ms, the objective 2.00 s.')
  expect(sentenceOfFeed(feedRows([withP99(null, 0)], [])[0]!)).toBe('No latency was measured in the last hour.')
})

test('the plain order is by class and name, others are by their column', () => {
  const names = (query: string) => {
    const view = viewOf(new URLSearchParams(query), FEED_PLAIN)
    return found(feedRows(feeds, []), view, FEED_FILTERS, FEED_COLUMNS).rows.map((row) => row.feed.feed)
  }
  expect(names('')[0]).toBe('WARNINGS')
  expect(names('sort=feed')).toEqual(feeds.map((one) => one.feed).toSorted((a, b) => a.localeCompare(b)))
  expect(names('class=grid&q=multicast')).toEqual(['NGRID'])
})

test('a list has at most eight columns', () => {
  expect(FEED_COLUMNS.length).toBeLessThanOrEqual(8)
})

test('sites of a feed come with the latency of most products, the slowest first', () => {
  const row = (site: string, p99: number, count: number, transport = 'unicast') =>
    ({ feed: 'NGRID', site, p99, count, transport, bound: 0.4 }) as LatencyRow
  const legs = [{ ...first.plan!.legs[0]!, site_names: ['never.edu', 'unl.edu'] }]
  const rows = [row('unl.edu', 80, 10), row('unl.edu', 20, 500, 'multicast'), row('gone.edu', 90, 3)]
  const its = sitesOfFeed({ ...first, plan: { ...first.plan!, legs } }, sites, rows)
  expect(its[0]).toMatchObject({ site: 'gone.edu', seen: null, p99_ms: 90, transport: 'unicast' })
  expect(its[1]).toMatchObject({ site: 'unl.edu', p99_ms: 20, transport: 'multicast' })
  expect(its.slice(2).every((one) => one.p99_ms === null)).toBe(true)
  expect(its.map((one) => one.site)).toContain('never.edu')
  expect(its).toHaveLength(sites.filter((one) => one.feeds.some((it) => it.feed === 'NGRID')).length + 2)
})

test('the total is in megabits', () => {
  const rates = { in_bps: 111e6, out_bps: 2.4e9, unicast_equivalent_bps: 11.3e9 }
  expect(totalOf([first], rates)).toBe('1 feed, 111 Mb/s in, 2400 Mb/s out; by unicast 11\u202f300 Mb/s')
})
