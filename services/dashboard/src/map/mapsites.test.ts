import { expect, test } from 'vitest'

import type { SiteListed, Strip, StripNow } from '../api'
import type { Overview, Site } from '../overview'
import { countsOf, filtered, filterOf, isPlaced, mapSitesOf, placedOf, worstFirst } from './sites'

const NOW = '2026-11-23T18:42:00Z'

function record(site: string, changed: Partial<SiteListed> = {}): SiteListed {
  const place = { text: '', latitude: 40, longitude: -97 }
  return { site, organisation: '', place, active: true, relay: false, state: 'connected', ...changed } as SiteListed
}

function live(site: string, changed: Partial<Site> = {}): Site {
  const feeds = [{ feed: 'NGRID' }]
  return { site, state: 'connected', behind_products: 0, behind_s: 0, last_receipt: NOW, feeds, ...changed } as Site
}

function hub(...sites: Site[]): Overview {
  return { now: NOW, sites, feeds: [] } as unknown as Overview
}

function strip(rows: Record<string, Partial<StripNow>>, others: StripNow['state'] | null = null): Strip {
  const row = (site: string | null, now: Partial<StripNow>) => ({ site, sites: 1, cells: [], now })
  return {
    rows: Object.entries(rows).map(([site, now]) => row(site, now)),
    others: others === null ? null : row(null, { state: others }),
  } as unknown as Strip
}

function statesOf(listed: SiteListed[], seen: Site[], past: Strip | null): string[] {
  return mapSitesOf(listed, hub(...seen), past).map((one) => one.state)
}

test('a site is green only with a latency within its objective', () => {
  const past = strip({ a: { state: 'within' }, b: { state: 'late' }, c: { state: 'nothing' }, d: { state: 'down' } })
  const listed = ['a', 'b', 'c', 'd', 'e'].map((site) => record(site))
  const seen = listed.map(({ site }) => live(site))
  expect(statesOf(listed, seen, past)).toEqual(['within', 'late', 'unmeasured', 'down', 'unmeasured'])
  expect(statesOf(listed, seen, null)).toEqual(Array(5).fill('unmeasured'))
})

test('the session decides for sites that are away, were never there, or catch up', () => {
  const listed = [
    record('away', { state: 'away' }),
    record('new', { state: 'never-enrolled' }),
    record('behind'),
    record('gone', { state: 'removed' }),
    record('off', { active: false }),
  ]
  const past = strip({ away: { state: 'within' }, behind: { state: 'within' } })
  expect(statesOf(listed, [live('behind', { behind_s: 90 })], past)).toEqual(['down', 'never', 'catching-up'])
})

test('a site without a row of its own has the state of the others only if they are all within', () => {
  const [listed, old] = [[record('a')], '2026-11-23T18:20:00Z']
  expect(statesOf(listed, [live('a')], strip({}, 'within'))).toEqual(['within'])
  expect(statesOf(listed, [live('a', { last_receipt: old })], strip({}, 'within'))).toEqual(['unmeasured'])
  expect(statesOf(listed, [live('a', { last_receipt: null })], strip({}, 'within'))).toEqual(['unmeasured'])
  expect(statesOf(listed, [live('a')], strip({}, 'late'))).toEqual(['unmeasured'])
})

test('a place needs both coordinates, within their bounds', () => {
  expect(placedOf({ text: '', latitude: -90, longitude: 180 })).toEqual({ latitude: -90, longitude: 180 })
  expect(placedOf({ text: '', latitude: 0, longitude: 0 })).not.toBeNull()
  for (const [latitude, longitude] of [
    [null, 5],
    [5, null],
    [90.1, 0],
    [0, -180.1],
    [Number.NaN, 0],
  ] as const) {
    expect(placedOf({ text: 'Lincoln', latitude, longitude })).toBeNull()
  }
  const [site] = mapSitesOf([record('a', { place: { text: 'x', latitude: null, longitude: null } })], hub(), null)
  expect(site && isPlaced(site)).toBe(false)
})

test('filters of an address; what means nothing filters nothing', () => {
  const sites = mapSitesOf(
    [record('a'), record('b', { state: 'away' })],
    hub(live('a'), live('b', { feeds: [] })),
    strip({ a: { state: 'within' } }),
  )
  const names = (query: string) => filtered(sites, filterOf(new URLSearchParams(query))).map((one) => one.site)
  expect(names('')).toEqual(['a', 'b'])
  expect(names('feed=NGRID')).toEqual(['a'])
  expect(names('state=down')).toEqual(['b'])
  expect(names('feed=NGRID&state=down')).toEqual([])
  expect(names('state=constructor&feed=')).toEqual(['a', 'b'])
  expect(countsOf(sites)).toMatchObject({ down: 1, within: 1, late: 0 })
})

test('the worst site is first, of equal states the one nearest to its objective', () => {
  const past = strip({
    a: { state: 'within', share: 0.1 },
    b: { state: 'within', share: 0.9 },
    c: { state: 'late', share: 1.2 },
    d: { state: 'within', share: 0.1 },
  })
  const listed = ['d', 'a', 'b', 'c'].map((site) => record(site))
  const sites = mapSitesOf(listed, hub(...listed.map(({ site }) => live(site))), past)
  expect(worstFirst(sites).map((one) => one.site)).toEqual(['c', 'b', 'a', 'd'])
})
