import { expect, test } from 'vitest'

import type { IncidentAction, NowHistory } from '../api'
import { recorded } from '../fixtures/recorded'
import type { Overview } from '../overview'
import { affectedCount, stepsOf } from './incidents'
import { kpisOf, rate } from './kpis'
import { silencesFor } from './silence'

const about = (kind: IncidentAction['kind'], change: Partial<IncidentAction> = {}): IncidentAction => ({
  kind,
  site: null,
  feed: null,
  circuit: null,
  ...change,
})
const seen = (changes: Partial<Overview> = {}) => recorded(changes)

test('an incident has at most two buttons, each to another page', () => {
  const addresses = (...actions: IncidentAction[]) => stepsOf(actions).map((step) => step.address)
  const down = { site: 'psu.edu' }
  expect(addresses(about('open-site', down), about('probe-path', down))).toEqual(['#/sites/psu.edu'])
  const late = { site: 'snu.ac.kr', feed: 'NGRID' }
  expect(stepsOf([about('preview-move', late), about('open-latency', late), about('open-site', late)])).toEqual([
    { title: 'Compare transports', address: '#/feeds/NGRID' },
    { title: 'Open the latency', address: '#/latency?site=snu.ac.kr&feed=NGRID' },
  ])
  expect(addresses(about('open-circuit', { circuit: 7 }), about('open-feed', { feed: 'HDS' }))).toEqual([
    '#/circuits/7',
    '#/feeds/HDS',
  ])
  expect(addresses(about('open-site'), about('open-feed'))).toEqual([])
})

test('affected are sites and feeds, or neither', () => {
  const affected = recorded().incidents.map(affectedCount)
  expect(affected).toEqual(['1 site, 4 feeds', '5 sites, 1 feed'])
  const none = { ...recorded().incidents[0]!.affected, sites: 0, feeds: 0 }
  expect(affectedCount({ affected: none })).toBe('')
})

test('the cards show rates of three digits, the saved share and the worst p99 of its objective', () => {
  expect(kpisOf(seen()).map(({ figure, unit, caption, isOver }) => [figure, unit, caption, isOver])).toEqual([
    ['26.7', 'Mb/s', '6 feeds', undefined],
    ['29.9', 'Mb/s', 'by unicast 127 Mb/s', undefined],
    ['77', '%', '97.5 of 127 Mb/s; in all 227 of 298 GB', undefined],
    ['109', '%', 'CONDUIT: 3.26 s of 3.00 s', true],
  ])
  const silent = { in_bps: 0, out_bps: 0, unicast_equivalent_bps: 0, egress_bytes: 0, unicast_equivalent_bytes: 0 }
  expect(kpisOf(seen({ throughput: silent, feeds: [] })).map((kpi) => kpi.figure)).toEqual(['0', '0', '–', '–'])
})

test('relays have a share in the saving if they fan out', () => {
  const label = (relay: string | null) => {
    const feeds = seen().feeds.map((feed) => ({
      ...feed,
      plan: feed.plan && { ...feed.plan, legs: feed.plan.legs.map((leg) => ({ ...leg, relay })) },
    }))
    return kpisOf(seen({ feeds }))[2]?.label
  }
  expect(label(null)).toBe('Saved by multicast')
  expect(label('prairie')).toBe('Saved by multicast and relays')
})

test('with a history the cards have curves, the share of the line, and the sums of today', () => {
  const point = { at: '2026-11-30T00:00:00Z', in_bps: 1, out_bps: 2, saved_share: null, worst_share: 0.4 }
  const history: NowHistory = {
    points: [point, { ...point, in_bps: null }],
    today: { since: point.at, in_bytes: 1, egress_bytes: 21e12, unicast_equivalent_bytes: 95.1e12 },
    egress_capacity_bps: 100e6,
    latency_read: true,
  }
  const cards = kpisOf(seen(), history)
  expect(cards.map((card) => card.history)).toEqual([
    [1, null],
    [2, 2],
    [null, null],
    [0.4, 0.4],
  ])
  expect(cards[1]?.caption).toBe('30 % of the 100 Mb/s that may leave')
  expect(cards[2]?.caption).toBe('97.5 of 127 Mb/s; today 74.1 of 95.1 TB')
  expect(cards.map((card) => card.limit)).toEqual([undefined, undefined, undefined, 1])
  const nothing = { since: null, in_bytes: null, egress_bytes: null, unicast_equivalent_bytes: null }
  expect(kpisOf(seen(), { ...history, today: nothing })[2]?.caption).toMatch(/in all 227 of 298 GB$/)
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
  const late = { kind: 'objective', feed: 'CONDUIT', site: 'noaa.gov', alarm: null } as const
  const groups = silencesFor(late)
  expect(groups.map((group) => group.title)).toEqual([
    'This alarm',
    'All alarms of noaa.gov',
    'All alarms of CONDUIT',
  ])
  const whole = { kind: 'objective', feed: 'CONDUIT', site: 'noaa.gov' }
  expect(groups[0]?.offers[0]?.body).toMatchObject({ minutes: 60, ...whole })
  expect(silencesFor({ ...late, alarm: 7 })[0]?.offers[2]?.body).toMatchObject({ minutes: 1440, alarm: 7 })
  expect(groups[1]?.offers.every((offer) => Number(offer.body['minutes']) > 0)).toBe(true)
})
