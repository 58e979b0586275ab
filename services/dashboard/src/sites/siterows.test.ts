import { expect, test } from 'vitest'

import type { Incident, Strip, StripNow } from '../api'
import { recorded } from '../fixtures/recorded'
import type { Feed, Site } from '../overview'
import { found } from '../rows/ordering'
import { viewOf } from '../rows/rowview'
import type { LatencyRow } from '../selfservice'
import {
  backlogWords,
  feedsOfSite,
  sentenceOfSite,
  SITE_COLUMNS,
  SITE_FILTERS,
  SITE_PLAIN,
  siteRows,
  stateWords,
  worstWords,
  type SiteRow,
} from './siterows'

const overview = recorded()
const first = overview.sites[0] as Site

function stripOf(now: Partial<StripNow>, others: StripNow['state'] | null = null): Strip {
  const measured = { feed: 'NGRID', p99_ms: 800, objective_ms: 2000, products: 90, since: null }
  const plain = { state: 'within', share: 0.4, ...measured }
  const row = { site: first.site, sites: 1, cells: [], now: { ...plain, ...now } as StripNow }
  const rest = others === null ? null : { ...row, site: null, sites: 9, now: { ...row.now, state: others } }
  return { quarters: [], rows: [row], others: rest, never_connected: 0 }
}

function rowOf(site: Partial<Site>, strip: Strip | null): SiteRow {
  return siteRows({ sites: [{ ...first, ...site }], now: overview.now }, strip)[0]!
}

test('a site is within only by a latency of the last minutes', () => {
  expect(rowOf({}, null)).toMatchObject({ state: 'unmeasured', now: null })
  expect(rowOf({}, stripOf({})).state).toBe('within')
  expect(rowOf({}, stripOf({ state: 'no-report', share: null })).state).toBe('unmeasured')
  expect(rowOf({ site: 'beyond.edu', last_receipt: overview.now }, stripOf({}, 'within')).state).toBe('within')
  expect(rowOf({ site: 'beyond.edu', last_receipt: null }, stripOf({}, 'within')).state).toBe('unmeasured')
})

test('states of the session come first', () => {
  expect(rowOf({ state: 'away' }, stripOf({})).state).toBe('down')
  expect(rowOf({ state: 'never-enrolled' }, null).state).toBe('never')
  expect(rowOf({ state: 'stands-by' }, stripOf({})).state).toBe('stands-by')
  expect(rowOf({ behind_s: 90 }, stripOf({})).state).toBe('catching-up')
})

test('words of the state, the worst feed and the backlog', () => {
  const late = rowOf({}, stripOf({ state: 'late', share: 1.64 }))
  expect(stateWords(late)).toBe('late, up to date')
  expect(worstWords(late)).toBe('164 %')
  expect(worstWords(rowOf({}, null))).toBe('not measured')
  expect(backlogWords({ ...first, behind_products: null })).toBe('–')
  expect(backlogWords({ ...first, behind_products: 0 })).toBe('nothing')
  expect(backlogWords({ ...first, behind_products: 22, behind_bytes: 45_700, behind_counting: true })).toBe(
    'at least 22, 45.7 kB',
  )
})

test('the sentence is that of the worst incidents, then of the worst feed', () => {
  const down = { site: first.site, title: 'unl.edu is down', over: false, silence: null } as Incident
  const row = rowOf({}, stripOf({}))
  expect(sentenceOfSite(row, [down, { ...down, over: true }])).toBe('unl.edu is down.')
  expect(sentenceOfSite(row, [])).toBe('Its worst feed is NGRID: p99 800 ms, the objective 2.00 s.')
  const away = rowOf({ state: 'away', state_words: 'away', connected: false, reason: 'ended by the site' }, null)
  expect(sentenceOfSite(away, [])).toBe('Away: ended by the site.')
})

test('sites are found by name, organisation, state and feed', () => {
  const names = (query: string) => {
    const view = viewOf(new URLSearchParams(query), SITE_PLAIN)
    return found(siteRows(overview, null), view, SITE_FILTERS, SITE_COLUMNS).rows.map((row) => row.site.site)
  }
  expect(names('')).toEqual(overview.sites.map((one) => one.site).toSorted((a, b) => a.localeCompare(b)))
  expect(names('q=nebraska')).toContain('unl.edu')
  expect(names('feed=NONE')).toEqual([])
  expect(SITE_COLUMNS.length).toBeLessThanOrEqual(8)
})

test('feeds of a site have their latency as a share of the objective, the nearest first', () => {
  const row = (feed: string, p99: number, kind = 'distribution') =>
    ({ feed, site: first.site, p99, kind, count: 9, transport: 'unicast', bound: 0.4 }) as LatencyRow
  const feeds = [{ ...(overview.feeds[0] as Feed), feed: 'NGRID', objective_ms: 2000 }]
  const its = feedsOfSite(first, feeds, [row('NGRID', 500), row('NGRID', 9000, 'end-to-end'), row('OLD', 1)])
  expect(its[0]).toMatchObject({ feed: 'NGRID', p99_ms: 500, share: 0.25, pending: 0, transport: 'multicast' })
  expect(its.find((one) => one.feed === 'OLD')).toMatchObject({ share: null, pending: null, transport: 'unicast' })
  expect(its).toHaveLength(first.feeds.length + 1)
})
