import { expect, test } from 'vitest'

import {
  gaps,
  historyOf,
  lookOf,
  pointsOf,
  questionOf,
  silences,
  stepsOf,
  worst,
  type Arrivals,
  type Point,
} from './latencyview'

const look = lookOf(
  new URLSearchParams('site=unl.edu&feed=IDS|DDPLUS&from=2026-03-14T10:00:00Z&to=2026-03-14T16:00:00Z&of=queueing'),
  'X',
)

function point(at: string, max: number | null, count = 1): Point {
  return { at, p50: max, p95: max, p99: max, max, count, negative: 0, bound: null, certainty: 'known' as const }
}

function arrivals(...at: string[]): Arrivals[] {
  return at.map((one) => ({ at: one, products: 2, bytes: 10, peak_1s_bytes: 10 }))
}

test('an address has the look', () => {
  expect(look).toEqual({
    feed: 'IDS|DDPLUS',
    site: 'unl.edu',
    kind: 'queueing',
    minutes: 360,
    until: '2026-03-14T16:00:00Z',
  })
})

test('what makes no sense is what people want most', () => {
  expect(lookOf(new URLSearchParams('minutes=abc&to=never&of=nothing'), 'NGRID')).toEqual({
    feed: 'NGRID',
    site: null,
    kind: 'distribution',
    minutes: 60,
    until: null,
  })
  expect(lookOf(new URLSearchParams('minutes=999999999'), 'NGRID').minutes).toBe(365 * 1440)
  expect(lookOf(new URLSearchParams('from=2026-03-14T10:00:00Z&to=2026-03-14T09:00:00Z'), 'NGRID').minutes).toBe(1)
})

test('the hub is asked for just that', () => {
  expect(questionOf(look)).toBe(
    'feed=IDS%7CDDPLUS&kind=queueing&minutes=360&site=unl.edu&until=2026-03-14T16%3A00%3A00Z',
  )
})

test('a week is shown by the hour, a month by the day', () => {
  const steps = (days: number) => new URLSearchParams(historyOf({ ...look, minutes: days * 1440 })).get('step')
  expect([1, 7, 14, 30].map(steps)).toEqual([null, 'hour', 'hour', null])
})

test('the steps cover the range that was asked for, and those without a point are gaps', () => {
  const at = (minute: number) => `2026-03-14T10:0${minute}:00Z`
  const series = { step_minutes: 1, from: at(1), to: at(6), points: [point(at(3), 5), point(at(5), 7)] }
  const steps_s = stepsOf(series)
  expect(steps_s.map((step_s) => new Date(step_s * 1000).toISOString().slice(14, 16))).toEqual([
    '01',
    '02',
    '03',
    '04',
    '05',
  ])
  expect(pointsOf(series, steps_s).map((one) => one?.max ?? null)).toEqual([null, null, 5, null, 7])
  const hours = { step_minutes: 60, from: '2026-03-14T09:30:00Z', to: '2026-03-14T11:00:00Z', points: [] }
  expect(stepsOf(hours).map((step_s) => new Date(step_s * 1000).toISOString().slice(11, 13))).toEqual(['09', '10'])
})

test('the worst has its time', () => {
  expect(worst([point('a', 3), point('b', 9), point('c', null)])?.at).toBe('b')
  expect(worst([])).toBeNull()
})

test('a gap is a time with products in the feed and no report from the site', () => {
  const minute = (at: number) => `2026-03-14T10:${String(at).padStart(2, '0')}:00Z`
  const arrived = {
    step_minutes: 1,
    points: arrivals(minute(0), minute(2), minute(3), minute(5), minute(7), minute(9)),
  }
  const reported = {
    step_minutes: 1,
    points: [point(minute(0), 1), point(minute(6), 1), point(minute(9), 1), point(minute(7), null, 0)],
  }
  expect(gaps(reported, arrived)).toEqual([
    { from: minute(2), to: minute(6), minutes: 4, products: 6 },
    { from: minute(7), to: minute(8), minutes: 1, products: 2 },
  ])
  expect(gaps({ step_minutes: 1440, points: [point('2026-03-14T00:00:00Z', 1)] }, arrived)).toEqual([])
})

test('a silence lies between two arrivals, the longest first', () => {
  const hour = (at: number) => `2026-03-14T${String(at).padStart(2, '0')}:00:00Z`
  const found = silences({ step_minutes: 60, points: arrivals(hour(1), hour(3), hour(4), hour(8)) })
  expect(found.map((gap) => [gap.from, gap.minutes])).toEqual([
    [hour(5), 180],
    [hour(2), 60],
  ])
})
