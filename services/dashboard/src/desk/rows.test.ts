import { expect, test } from 'vitest'
import { at, CALENDAR, NOW, RESERVATION } from '../fixtures/desk'
import { filtered, freeOn, lanesOf, MOST_LANES, rateOn, rowsOf, type Bar } from './rows'
import { frameAt, HOUR_MS } from './scale'
import type { BookedTest, Calendar, CalendarResource, Reservation } from './types'

const FRAME = frameAt('day', Date.parse(NOW))
const busy: Calendar = { ...CALENDAR, reservations: [RESERVATION] }
const window = (from: number, to: number) => ({ begin_ms: Date.parse(at(from)), end_ms: Date.parse(at(to)) })
const labels = (calendar: Calendar) =>
  Object.fromEntries(rowsOf(calendar, FRAME).map((row) => [row.key, row.lanes.flat().map((bar) => bar.label)]))

test('a link has a row for each direction, hosts and ports have one', () => {
  const rows = rowsOf(CALENDAR, FRAME)
  expect(rows.map((row) => row.title)).toEqual([
    'seat → chic',
    'chic → seat',
    'seat → unl-eth1',
    'unl-eth1 → seat',
    'hub-eth0 → chic',
    'chic → hub-eth0',
    'hub-1',
    'hub-eth0',
    'unl-eth1',
  ])
  expect(rows[1]?.note).toBe('5 Gb/s, long')
})

test('a bar stands in the rows of the directions in which a rate is reserved, and once in a row', () => {
  const one = ['7 unl.edu reserved']
  expect(labels(busy)).toEqual({
    'link long out': one,
    'link long in': one,
    'link unl out': one,
    'link unl in': one,
    'link up out': one,
    'link up in': one,
    'host hub-1 both': one,
    'hub-eth0 both': one,
    'unl-eth1 both': one,
  })
  const oneWay: Reservation = { ...RESERVATION, rate_in_bps: 0, near_in_bps: 0 }
  const shown = labels({ ...CALENDAR, reservations: [oneWay] })
  expect(shown['link up out']).toEqual(one)
  expect(shown['link up in']).toEqual([])
  expect(shown['link long out']).toEqual([])
  expect(shown['link long in']).toEqual(one)
})

test('a reservation outside the frame has no bar, and one that touches it has none either', () => {
  for (const [from, to] of [[-2, 0], [24, 25]] as const) {
    const moved = { ...RESERVATION, begin: at(from), end: at(to) }
    expect(Object.values(labels({ ...CALENDAR, reservations: [moved] })).flat()).toEqual([])
  }
})

test('labels say the state, of a held one its expiry, of an active one its rate', () => {
  const label = (part: Partial<Reservation>) =>
    labels({ ...CALENDAR, reservations: [{ ...RESERVATION, ...part }] })['hub-eth0 both']?.[0]
  expect(label({ state: 'held', held_until: '2026-11-23T18:15:00Z' })).toBe('7 unl.edu held until 18:15')
  expect(label({ state: 'active' })).toBe('7 unl.edu 600 Mb/s')
  expect(label({ state: 'tearing-down' })).toBe('7 unl.edu tearing down')
  expect(label({ sites: ['a', 'b', 'c'] })).toBe('7 3 sites reserved')
})

const TRAIN: BookedTest = {
  number: 2_000_000_001, kind: 'test', test: 'knee', begin: at(1), end: at(1.5), rate_out_bps: 400e6, rate_in_bps: 0,
  by: 'ann', circuit: null, along: [4, 3, 2], against: [5],
}

test('a test with load has a bar where it sends, and holds its rate unless a circuit has that', () => {
  const shown = labels({ ...CALENDAR, tests: [TRAIN] })
  expect(shown['link up out']).toEqual(['Test knee 400 Mb/s'])
  expect(shown['link up in']).toEqual([])
  expect(shown['unl-eth1 both']).toEqual(['Test knee 400 Mb/s'])
  expect(freeOn({ ...busy, tests: [TRAIN] }, 2, 'out', window(0, 5))).toBe(0)
  expect(freeOn({ ...busy, tests: [TRAIN] }, 2, 'out', window(1.5, 5))).toBe(400e6)
  const inside = { ...busy, tests: [{ ...TRAIN, circuit: 7 }] }
  expect(freeOn(inside, 2, 'out', window(0, 5))).toBe(400e6)
  expect(labels(inside)['hub-eth0 both']).toContain('Test knee in circuit 7 400 Mb/s')
  expect(labels({ ...busy, tests: null })).toEqual(labels(busy))
})

test('a row says whose port it is', () => {
  const owners = [{ owner: null, sender: 'cloud' }, { owner: 'geant', sender: null }]
  const resources = CALENDAR.resources.slice(4).map((one, at) => ({ ...one, ...owners[at] }))
  const notes = rowsOf({ ...CALENDAR, resources }, FRAME).map((row) => row.note)
  expect(notes).toEqual(['1 Gb/s, the sender cloud', '1 Gb/s, geant'])
})

test('bars that touch share a lane, and those that overlap do not', () => {
  const bar = (key: string, from: number, to: number): Bar => ({
    ...window(from, to), key, look: 'reserved', label: key, circuit: 1, state: 'admitted',
  })
  const { lanes } = lanesOf([bar('b', 1, 2), bar('a', 0, 1), bar('c', 0.5, 1.5), bar('d', 2, 3)], 3)
  expect(lanes.map((lane) => lane.map((one) => one.key))).toEqual([['a', 'b', 'd'], ['c']])
  const many = lanesOf(Array.from({ length: 9 }, (_, at) => bar(String(at), 0, 1)), MOST_LANES)
  expect([many.lanes.length, many.more]).toEqual([MOST_LANES, 9 - MOST_LANES])
})

test('the free rate is what the fullest moment of the window leaves', () => {
  const two = { ...busy, reservations: [RESERVATION, { ...RESERVATION, circuit: 8, begin: at(2), end: at(3) }] }
  expect(freeOn(two, 2, 'out', window(0, 1))).toBe(1e9)
  expect(freeOn(two, 2, 'out', window(0, 9))).toBe(400e6)
  expect(freeOn(two, 2, 'in', window(0, 9))).toBe(900e6)
  expect(freeOn(two, 0, 'in', window(0, 9))).toBe(5e9 - 600e6)
  expect(freeOn(two, 2, 'out', window(1, 2), 7)).toBe(1e9)
  const over = { ...busy, reservations: [{ ...RESERVATION, state: 'cancelled' as const }] }
  expect(freeOn(over, 2, 'out', window(0, 9))).toBe(1e9)
  const closed = { name: 'work', reason: '', begin: at(4), end: at(5), resources: [2] }
  expect(freeOn({ ...busy, maintenance: [closed] }, 2, 'out', window(0, 5))).toBe(0)
  expect(freeOn({ ...busy, maintenance: [closed] }, 2, 'out', window(0, 4))).toBe(400e6)
})

test('sums of rates agree with a brute force over minutes', () => {
  const seed = Date.now() % 100_000
  let state = seed
  const draw = (below: number) => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) % below
  const reservations = Array.from({ length: 40 }, (_, circuit) => {
    const begin = draw(60)
    const bps = 1e6 * (1 + draw(9))
    const rates = { rate_out_bps: bps, near_out_bps: bps, begin: at(begin / 60), end: at((begin + 1 + draw(30)) / 60) }
    return { ...RESERVATION, circuit, ...rates }
  })
  const calendar = { ...CALENDAR, reservations }
  const resource = calendar.resources[2] as CalendarResource
  const level = (minute: number) => {
    const moment = Date.parse(at(minute / 60))
    const holding = reservations.filter((one) => Date.parse(one.begin) <= moment && moment < Date.parse(one.end))
    return holding.reduce((sum, one) => sum + rateOn(one, resource, 2, 'out'), 0)
  }
  for (let turn = 0; turn < 50; turn += 1) {
    const from = draw(80)
    const minutes = Array.from({ length: 1 + draw(20) }, (_, index) => from + index)
    const peak = Math.max(...minutes.map(level))
    const asked = window(from / 60, (from + minutes.length) / 60)
    expect(freeOn(calendar, 2, 'out', asked), `seed ${seed}`).toBe(1e9 - peak)
  }
})

test('rows are filtered by name and by use', () => {
  const rows = rowsOf({ ...busy, reservations: [{ ...RESERVATION, along: [4], against: [] }] }, FRAME)
  const titles = (text: string, onlyUsed: boolean) => filtered(rows, text, onlyUsed).map((row) => row.title)
  expect(titles('  UNL', false)).toEqual(['seat → unl-eth1', 'unl-eth1 → seat', 'unl-eth1'])
  expect(titles('', true)).toEqual(['hub-eth0'])
  expect(FRAME.end_ms - FRAME.begin_ms).toBe(24 * HOUR_MS)
})
