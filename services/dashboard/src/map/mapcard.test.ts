import { expect, test } from 'vitest'

import type { Incident } from '../api'
import type { Feed, SiteFeed } from '../overview'
import type { LatencyRow } from '../selfservice'
import { incidentOf, p99Of, relayLines, shownFeeds } from './card'
import type { MapSite, PlacedSite } from './sites'

const FEEDS = ['A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'].map((feed) => ({ feed, leg: 1, transport: 'unicast' }))

function site(feeds: unknown[], place: MapSite['place'] = { latitude: 40, longitude: -97 }): MapSite {
  return { site: 'unl.edu', place, now: { feed: 'G' }, seen: { feeds } } as unknown as MapSite
}

test('a card lists six feeds, the worst one first, and counts the others', () => {
  const { shown, more } = shownFeeds(site(FEEDS))
  expect(shown.map((one) => one.feed)).toEqual(['G', 'A', 'B', 'C', 'D', 'E'])
  expect(more).toBe(2)
  expect(shownFeeds({ ...site([]), seen: null })).toEqual({ shown: [], more: 0 })
})

test('p99 is that of the transport in use, else that of most products; without a row it is not known', () => {
  const row = (transport: string, p99: number, count: number, kind = 'distribution') =>
    ({ feed: 'A', transport, p99, count, kind }) as LatencyRow
  const rows = [row('unicast', 10, 5), row('multicast', 20, 50), row('relay', 30, 0), row('unicast', 99, 9, 'ingest')]
  const feed = (transport: string) => ({ feed: 'A', transport }) as SiteFeed
  expect(p99Of(rows, feed('unicast'))).toBe(10)
  expect(p99Of(rows, feed('relay'))).toBe(20)
  expect(p99Of(rows, { ...feed('unicast'), feed: 'B' })).toBeNull()
})

test('the incident is the first of the site that continues', () => {
  const one = (name: string, title: string, over = false) => ({ site: name, title, over }) as Incident
  const incidents = [one('a', 'ended', true), one('b', 'other'), one('a', 'down')]
  expect(incidentOf('a', incidents)?.title).toBe('down')
  expect(incidentOf('c', incidents)).toBeNull()
})

test('lines lead to the relays of the legs in use, if both ends have a place', () => {
  const relay = (name: string) => ({ site: name, place: { latitude: 50, longitude: 8 } }) as PlacedSite
  const legs = [{ leg: 1, relay: 'r1' }, { leg: 2, relay: 'r2' }]
  const feeds = [{ feed: 'A', plan: { legs } }, { feed: 'B', plan: null }] as unknown as Feed[]
  const relays = [relay('r1'), relay('r2')]
  expect(relayLines(site(FEEDS), relays, feeds)).toHaveLength(1)
  expect(relayLines(site([]), relays, feeds)).toEqual([])
  expect(relayLines(site(FEEDS, null), relays, feeds)).toEqual([])
})
