import { expect, test } from 'vitest'

import { recorded } from '../fixtures/recorded'
import type { Fault, Feed, Overview } from '../overview'
import { incidentsOf, lasting } from './incidents'
import { kpisOf, rate } from './kpis'
import { silencesFor } from './silence'
import { statusOf } from './status'

const NOW = '2026-11-23T18:42:07Z'
const DOWN: Fault = {
  at: '2026-11-23T18:36:04Z',
  severity: 'critical',
  kind: 'site-down',
  alarm: 7,
  sentence: 'noaa.gov does not answer.',
  feed: null,
  site: 'noaa.gov',
  next: 'Ask its operator.',
  silence: null,
}
const LATE: Fault = { ...DOWN, severity: 'warning', kind: 'objective', alarm: null, feed: 'CONDUIT', site: null }
const SILENCE = { number: 1, until: NOW, by: 'anna' } as unknown as Fault['silence']

const NOT_MEASURED = { p50: null, p95: null, p99: null, max: null, count: 0, negative: 0, bound: null, certainty: null }

const seen = (faults: Fault[], changes: Partial<Overview> = {}) => recorded({ now: NOW, faults, ...changes })

test('the title of an incident names site, feed and duration', () => {
  const [down, late] = incidentsOf(seen([LATE, DOWN]))
  expect([down?.title, down && lasting(down, NOW), down?.cause]).toEqual([
    'noaa.gov is down',
    'noaa.gov has been down for 6 min',
    'noaa.gov does not answer.',
  ])
  expect([late?.title, late && lasting(late, NOW)]).toEqual(['CONDUIT is late', 'CONDUIT is late'])
  const other = incidentsOf(seen([{ ...DOWN, kind: 'hub-disk', site: null, sentence: 'The disk is 97 % full.' }]))
  expect(other).toMatchObject([{ title: 'The disk is 97 % full', cause: '', affected: { count: '', detail: '' } }])
})

test('a site that has never enrolled is not called down', () => {
  const sites = seen([]).sites.map((site) => ({ ...site, state: 'never-enrolled' as const }))
  expect(incidentsOf(seen([DOWN], { sites }))[0]?.title).toBe('noaa.gov has never enrolled')
})

test('affected are the site with its feeds and its backlog, or the feed with its sites', () => {
  const [down, late] = incidentsOf(seen([DOWN, LATE]))
  expect(down?.affected.count).toBe('1 site, 4 feeds')
  expect(down?.affected.detail).toMatch(/^4821 products \(.* MB\) wait here\./)
  expect(late?.affected).toEqual({ count: '1 site, 1 feed', detail: 'p99 is 3.26 s, the objective 3.00 s.' })
  const both = incidentsOf(seen([{ ...LATE, site: 'noaa.gov' }]))
  expect(both[0]?.affected).toEqual({ count: '1 site, 1 feed', detail: '3 other feeds without an incident.' })
})

test('at most two buttons lead to pages that exist', () => {
  const addresses = (fault: Fault) => incidentsOf(seen([fault]))[0]?.steps.map((step) => step.address)
  expect(addresses({ ...LATE, site: 'noaa.gov' })).toEqual(['#/latency?site=noaa.gov&feed=CONDUIT', '#/sites/noaa.gov'])
  expect(addresses(DOWN)).toEqual(['#/sites/noaa.gov'])
  expect(addresses({ ...DOWN, site: 'gone.example' })).toEqual([])
})

test('the status names the two worst incidents and leaves silenced ones uncounted', () => {
  const status = statusOf(seen([DOWN, LATE, { ...LATE, feed: 'NGRID' }, { ...DOWN, silence: SILENCE }]))
  expect(status.sentence).toBe('noaa.gov has been down for 6 min; CONDUIT is late; 1 more')
  expect(status.counts).toEqual({ critical: 1, warning: 2, information: 0 })
  expect(status.detail).toBe('4 of 7 sites up to date; 4 of 5 feeds within the objectives.')
})

test('a calm hub is within its objectives only if all of them are measured', () => {
  const sentence = (changes: Partial<Overview>) => statusOf(seen([], changes)).sentence
  const { sites, feeds } = seen([])
  const upToDate = sites.slice(0, 2).map((site) => ({
    ...site,
    relay: false,
    state: 'connected' as const,
    behind_products: 0,
    behind_s: 0,
  }))
  const within = feeds.filter((feed) => ['NGRID', 'NEXRAD2'].includes(feed.feed))
  const latency = (feed: Feed) => ({ ...feed.latency, distribution_ms: NOT_MEASURED })
  const unmeasured = within.map((feed): Feed => ({ ...feed, latency: latency(feed) }))
  expect(sentence({ sites: upToDate, feeds: within })).toBe('All 2 sites receive their feeds within the objectives')
  expect(sentence({ sites: upToDate, feeds: [...within, ...unmeasured.slice(1)] })).toBe(
    'All 2 sites are up to date; 1 feed not measured yet',
  )
  expect(sentence({ sites: upToDate, feeds: unmeasured })).toMatch(/latency is not measured yet$/)
  expect(sentence({ sites: upToDate })).toBe('CONDUIT is late')
  expect(sentence({})).toBe('4 of 7 sites are up to date')
  expect([sentence({ feeds: [] }), sentence({ sites: [] })]).toEqual([
    'No feed is set up yet',
    'No site receives feeds yet',
  ])
})

test('the cards show rates of three digits, the saved share and the worst p99 of its objective', () => {
  expect(kpisOf(seen([])).map(({ figure, unit, caption, isOver }) => [figure, unit, caption, isOver])).toEqual([
    ['26.7', 'Mb/s', '6 feeds', undefined],
    ['29.9', 'Mb/s', 'by unicast 127 Mb/s', undefined],
    ['77', '%', '97.5 Mb/s of 127 Mb/s; in all 227 GB of 298 GB', undefined],
    ['109', '%', 'CONDUIT: 3.26 s of 3.00 s', true],
  ])
  const silent = { in_bps: 0, out_bps: 0, unicast_equivalent_bps: 0, egress_bytes: 0, unicast_equivalent_bytes: 0 }
  expect(kpisOf(seen([], { throughput: silent, feeds: [] })).map((kpi) => kpi.figure)).toEqual(['0', '0', '–', '–'])
})

test('a rate has the unit that fits', () => {
  const said = (bps: number) => Object.values(rate(bps)).join(' ')
  expect([950, 999_600, 2.4e9, 99.96e6, 12.5e9, NaN].map(said)).toEqual([
    '950 b/s',
    '1.00 Mb/s',
    '2.40 Gb/s',
    '100 Mb/s',
    '12.5 Gb/s',
    '– ',
  ])
})

test('a silence is of this alarm, or of all alarms of its site or feed, and has an end', () => {
  const groups = silencesFor({ ...LATE, site: 'noaa.gov' })
  expect(groups.map((group) => group.title)).toEqual([
    'This alarm',
    'All alarms of noaa.gov',
    'All alarms of CONDUIT',
  ])
  const about = { kind: 'objective', feed: 'CONDUIT', site: 'noaa.gov' }
  expect(groups[0]?.offers[0]?.body).toMatchObject({ minutes: 60, ...about })
  expect(silencesFor(DOWN)[0]?.offers[2]?.body).toMatchObject({ minutes: 1440, alarm: 7 })
  expect(groups[1]?.offers.every((offer) => Number(offer.body['minutes']) > 0)).toBe(true)
})
