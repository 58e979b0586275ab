import { afterEach, expect, test } from 'vitest'
import {
  DAY_MS,
  days,
  fieldOf,
  fieldTime,
  frameAt,
  frameNow,
  HOUR_MS,
  momentText,
  pixelsOf,
  placeOf,
  snapped,
  SPANS,
  STEPS,
  ticks,
  timeOf,
  turned,
} from './scale'

const NOON = Date.parse('2026-11-23T12:00:00Z')
const zone = process.env['TZ']

afterEach(() => {
  process.env['TZ'] = zone
})

test('a moment comes back from its pixel', () => {
  const frame = frameAt('day', NOON)
  for (const at of [NOON, NOON + 1, NOON + HOUR_MS, NOON + DAY_MS]) {
    expect(timeOf(frame, 800, pixelsOf(frame, 800, at))).toBeCloseTo(at, 0)
  }
  expect(pixelsOf(frame, 800, NOON)).toBe(0)
  expect(pixelsOf(frame, 800, NOON + DAY_MS / 2)).toBe(400)
  expect(timeOf(frame, 0, 13)).toBe(NOON)
})

test('snapping goes to the nearest step of UTC', () => {
  const step = STEPS.day.snap_ms
  expect(snapped(NOON + 7 * 60_000, step)).toBe(NOON)
  expect(snapped(NOON + 8 * 60_000, step)).toBe(NOON + step)
  expect(snapped(snapped(NOON + 12_345, step), step)).toBe(snapped(NOON + 12_345, step))
})

test('the change of clocks moves no window', () => {
  // Clocks in Berlin go back on 25 October 2026 at 01:00 UTC, so this local day has 25 hours.
  for (const name of ['Europe/Berlin', 'America/Denver', 'UTC']) {
    process.env['TZ'] = name
    const begin = Date.parse('2026-10-25T00:00:00Z')
    const frame = frameAt('day', begin)
    expect(frame.end_ms - frame.begin_ms).toBe(DAY_MS)
    expect(ticks('day', frame).map((one) => one.label)).toEqual([
      '00:00', '03:00', '06:00', '09:00', '12:00', '15:00', '18:00', '21:00',
    ])
    expect(fieldTime(fieldOf(begin))).toBe(begin)
    expect(fieldOf(begin)).toBe('2026-10-25T00:00')
    expect(frameAt('month', begin)).toEqual({
      begin_ms: Date.parse('2026-10-01T00:00:00Z'),
      end_ms: Date.parse('2026-11-01T00:00:00Z'),
    })
    expect(momentText(begin, begin)).toBe('Sun 25 Oct 00:00')
  }
})

test('turning forth and back ends at the same frame', () => {
  for (const span of SPANS) {
    const frame = frameNow(span, NOON)
    expect(frame.begin_ms).toBeLessThanOrEqual(NOON)
    expect(frame.end_ms).toBeGreaterThan(NOON)
    const next = turned(span, frame, 1)
    expect(next.begin_ms).toBe(frame.end_ms)
    expect(turned(span, next, -1)).toEqual(frame)
  }
})

test('a bar is cut at the edges of the frame, and one outside has no place', () => {
  const frame = frameAt('day', NOON)
  expect(placeOf(frame, NOON - DAY_MS, NOON + DAY_MS / 2)).toEqual({ left: 0, width: 50 })
  expect(placeOf(frame, NOON + DAY_MS / 2, NOON + 9 * DAY_MS)).toEqual({ left: 50, width: 50 })
  expect(placeOf(frame, NOON - DAY_MS, NOON)).toBeNull()
  expect(placeOf(frame, NOON + DAY_MS, NOON + 2 * DAY_MS)).toBeNull()
})

test('the header names each day once', () => {
  expect(days('day', frameAt('day', NOON)).map((one) => one.label)).toEqual(['Mon 23 Nov', 'Tue 24 Nov'])
  expect(days('day', frameAt('day', NOON + 11 * HOUR_MS)).map((one) => one.label)).toEqual(['Tue 24 Nov'])
  expect(days('week', frameAt('week', NOON))).toEqual([])
  expect(ticks('week', frameAt('week', NOON)).length).toBe(7)
})

test('an incomplete field is no moment', () => {
  for (const text of ['', '2026-11-23', '2026-13-45T99:99', 'soon']) expect(fieldTime(text)).toBeNull()
})

test('another year is named', () => {
  expect(momentText(NOON, Date.parse('2027-01-01T00:00:00Z'))).toBe('Mon 23 Nov 2026 12:00')
})
