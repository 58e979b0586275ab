import { expect, test } from 'vitest'
import { CALENDAR, CIRCUIT, NOW } from '../fixtures/desk'
import { commandOf, dragged, draftFor, draftLike, drawn, gripOf, keyed } from './draft'
import { lackOf, moved, resized, wantedOf } from './draft'
import { frameAt, HOUR_MS, MINUTE_MS } from './scale'

const T = Date.parse(NOW)
const STEP = 15 * MINUTE_MS
const HOUR = { begin_ms: T, end_ms: T + HOUR_MS }
const hub = CALENDAR.resources[4] ?? null
const site = CALENDAR.resources[5] ?? null
const full = { ...draftFor(CALENDAR, T, T + HOUR_MS, site), out_mbps: 600 }

test('a draft takes its ends from the row that it was drawn on', () => {
  expect(draftFor(CALENDAR, T, T + HOUR_MS, null)).toMatchObject({ from: 'hub-eth0', to: '' })
  expect(draftFor(CALENDAR, T, T + HOUR_MS, site)).toMatchObject({ from: 'hub-eth0', to: 'unl-eth1' })
  expect(draftFor(CALENDAR, T, T + HOUR_MS, hub)).toMatchObject({ from: 'hub-eth0', to: '' })
  const host = CALENDAR.resources[3] ?? null
  expect(draftFor(CALENDAR, T, T + HOUR_MS, host)).toMatchObject({ from: 'hub-eth0', to: '' })
  expect(draftFor(CALENDAR, T, T + HOUR_MS, CALENDAR.resources[0] ?? null)).toMatchObject({ from: 'hub-eth0', to: '' })
})

test('arrows move a window by a step, with Shift they move its end, and a step remains', () => {
  expect(keyed(HOUR, 'ArrowRight', false, STEP)).toEqual({ begin_ms: T + STEP, end_ms: T + HOUR_MS + STEP })
  expect(keyed(HOUR, 'ArrowLeft', false, STEP)).toEqual({ begin_ms: T - STEP, end_ms: T + HOUR_MS - STEP })
  expect(keyed(HOUR, 'ArrowRight', true, STEP)).toEqual({ begin_ms: T, end_ms: T + HOUR_MS + STEP })
  let shrunk = HOUR
  for (let turn = 0; turn < 9; turn += 1) shrunk = keyed(shrunk, 'ArrowLeft', true, STEP) ?? shrunk
  expect(shrunk).toEqual({ begin_ms: T, end_ms: T + STEP })
  expect(keyed(HOUR, 'Enter', false, STEP)).toBeNull()
})

test('the pointer drops edges on steps and keeps the length of what it moves', () => {
  expect(dragged(HOUR, 'whole', 20 * MINUTE_MS, STEP)).toEqual({ begin_ms: T + STEP, end_ms: T + HOUR_MS + STEP })
  expect(dragged(HOUR, 'end', 20 * MINUTE_MS, STEP)).toEqual({ begin_ms: T, end_ms: T + HOUR_MS + STEP })
  expect(dragged(HOUR, 'begin', 9 * HOUR_MS, STEP)).toEqual({ begin_ms: T + HOUR_MS - STEP, end_ms: T + HOUR_MS })
  const odd = moved(HOUR, 7 * MINUTE_MS)
  expect(dragged(odd, 'whole', 0, STEP).begin_ms % STEP).toBe(0)
  expect(resized(HOUR, 'end', -9 * HOUR_MS, STEP).end_ms).toBe(T + STEP)
})

test('a bar is taken at an edge or as a whole', () => {
  expect([0, 8, 50, 92, 100].map((x) => gripOf({ left: 0, right: 100 }, x))).toEqual([
    'begin', 'begin', 'whole', 'end', 'end',
  ])
  expect([1, 6, 11].map((x) => gripOf({ left: 0, right: 12 }, x))).toEqual(['begin', 'whole', 'end'])
})

test('a drawn window begins and ends on steps, in either direction, and a click makes an hour', () => {
  const frame = frameAt('day', T)
  const forth = drawn(frame, 960, 40, 121, STEP)
  expect(forth).toEqual({ begin_ms: T + HOUR_MS, end_ms: T + 3 * HOUR_MS })
  expect(drawn(frame, 960, 121, 40, STEP)).toEqual(forth)
  expect(drawn(frame, 960, 40, 41, STEP)).toEqual({ begin_ms: T + HOUR_MS, end_ms: T + 2 * HOUR_MS })
})

test('a draft says what it lacks', () => {
  expect(lackOf(full)).toBeNull()
  expect(lackOf({ ...full, to: '' })).toBe('Choose both ends.')
  expect(lackOf({ ...full, to: full.from })).toBe('Choose two different ends.')
  for (const out_mbps of [null, 0, -1, Number.NaN]) expect(lackOf({ ...full, out_mbps })).toMatch(/^Give the rate/)
  expect(lackOf({ ...full, in_mbps: -1 })).toMatch(/^Give a rate back/)
  expect(lackOf({ ...full, end_ms: full.begin_ms })).toMatch(/ends not after its begin/)
  for (const hold_min of [0, 61, Number.NaN]) expect(lackOf({ ...full, hold_min })).toMatch(/^A hold lasts/)
})

test('a request has what differs from the default, and nothing else', () => {
  expect(wantedOf(full, CALENDAR)).toEqual({
    hub: { port: 'hub-eth0' },
    sites: [{ port: 'unl-eth1' }],
    rate_out_bps: 600_000_000,
    rate_in_bps: 0,
    begin: '2026-11-23T18:00:00.000Z',
    end: '2026-11-23T19:00:00.000Z',
    description: '',
  })
  const more = {
    order: 'widest',
    cap: 'soft',
    include: 'up, long',
    exclude: 'seat',
    hold_min: 15,
    creation: 'by-hand',
  } as const
  expect(wantedOf({ ...full, ...more }, CALENDAR)).toMatchObject({
    path_order: 'widest',
    cap: 'soft',
    include: ['up', 'long'],
    exclude: ['seat'],
    hold_s: 900,
    creation: 'by-hand',
  })
  const between = { ...full, from: 'unl-eth1', to: 'other' }
  expect(wantedOf(between, CALENDAR)).toMatchObject({ hub: null, sites: [{ port: 'unl-eth1' }, { port: 'other' }] })
})

test('the command asks for the same', () => {
  expect(commandOf({ ...full, in_mbps: 10, hold_min: 2, creation: 'by-hand', include: 'up' }, CALENDAR)).toBe(
    'downburst circuits add --port hub-eth0 --to unl-eth1 --rate 600M --rate-back 10M ' +
      '--begin 2026-11-23T18:00:00Z --end 2026-11-23T19:00:00Z --hold 120s --by-hand --include up',
  )
  expect(commandOf({ ...full, from: 'unl-eth1', to: 'b' }, CALENDAR)).toContain('--from unl-eth1 --to b')
})

test('a draft like a circuit has its length at another begin', () => {
  expect(draftLike(CIRCUIT, T)).toMatchObject({ from: 'hub-eth0', to: 'unl-eth1', out_mbps: 600, end_ms: T + HOUR_MS })
  expect(draftLike({ ...CIRCUIT, end: null }, T).end_ms).toBe(T + HOUR_MS)
})
