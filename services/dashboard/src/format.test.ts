import { describe, expect, test } from 'vitest'

import {
  ago,
  bound,
  doubted,
  bytes,
  decade,
  latency,
  measured,
  megabits,
  NOT_KNOWN,
  peakOverMean,
  percent,
  span,
  tenths,
  timeOfDay,
  whole,
} from './format'

describe('figures', () => {
  test.each([
    [0, '0'],
    [18_200_000, '18.2'],
    [127_400_000, '127'],
    [41_000, '0.041'],
    [900, '<0.001'],
    [2_345_000_000, '2345'],
    [12_345_000_000, '12\u202f345'],
    [640_000, '0.64'],
    [-1_500_000, '−1.50'],
  ])('%d bit/s is %s Mb/s', (bps, text) => expect(megabits(bps)).toBe(text))

  test.each([
    [0, '0.00 ms'],
    [0.4211, '0.42 ms'],
    [8.12, '8.1 ms'],
    [431.2, '431 ms'],
    [2310, '2.31 s'],
    [45_600, '45.6 s'],
    [252_000, '4.2 min'],
    [-3.41, '−3.4 ms'],
    [-0.001, '0.00 ms'],
  ])('%d ms reads %s', (ms, text) => expect(latency(ms)).toBe(text))

  test.each([
    [42.1, 0.8, '42.1 ms ± 0.80 ms', '42.1 ms'],
    [40, 20, '40.0 ms ± 20.0 ms', '40.0 ms'],
    [1.2, 35, 'not known (1.2 ms ± 35.0 ms)', 'not known (1.2 ms)'],
    [-25, 35, '−25.0 ms ± 35.0 ms (clock)', '−25.0 ms (clock)'],
    [12, null, '12.0 ms', '12.0 ms'],
  ])('%d ms within %o ms reads %s', (ms, within, alone, beside) => {
    expect(measured(ms, within)).toBe(alone)
    expect(doubted(ms, within)).toBe(beside)
  })

  test.each([
    [12, '12'],
    [3.21, '3.2'],
    [0.98, '1.0'],
    [null, NOT_KNOWN],
  ])('%d has a decimal at most: %s', (value, text) => expect(tenths(value)).toBe(text))

  test.each([
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.00 kB'],
    [999_600, '1.00 MB'],
    [71_300_000_000, '71.3 GB'],
    [3e18, '3000 PB'],
  ])('%d bytes are %s', (count, text) => expect(bytes(count)).toBe(text))

  test.each([
    [0, '0 %'],
    [0.004, '<1 %'],
    [0.468, '47 %'],
    [0.999, '>99 %'],
    [1, '100 %'],
    [-0.12, '−12 %'],
  ])('a share of %d is %s', (share, text) => expect(percent(share)).toBe(text))

  test.each([
    [0, '0 s'],
    [119, '119 s'],
    [125, '2 min'],
    [7_500, '2 h 5 min'],
    [7_200, '2 h'],
    [273_600, '3 d 4 h'],
    [-5, '0 s'],
  ])('%d seconds are %s', (seconds, text) => expect(span(seconds)).toBe(text))

  test('decades are labelled without false digits', () => {
    expect([0.1, 1, 10, 1000, 100_000].map(decade)).toEqual(['0.1 ms', '1 ms', '10 ms', '1 s', '100 s'])
  })

  test('a peak is shown as a multiple of the mean', () => {
    expect(peakOverMean(61e6, 18.2e6)).toBe('3.4×')
    expect(peakOverMean(400e6, 12e6)).toBe('33×')
    expect(peakOverMean(1, 0)).toBe(NOT_KNOWN)
  })

  test('an age is measured by the clock of the hub', () => {
    expect(ago('2026-03-14T15:09:20Z', '2026-03-14T15:09:26Z')).toBe('6 s ago')
    expect(ago('2026-03-14T15:09:20+02:00', '2026-03-14T15:09:20Z')).toBe('2 h ago')
    expect(ago('nonsense', '2026-03-14T15:09:26Z')).toBe(NOT_KNOWN)
    expect(timeOfDay('2026-03-14T15:09:26.5+00:00')).toBe('15:09:26Z')
  })

  test.each([megabits, latency, bound, bytes, percent, whole, span])('%o knows what it does not know', (format) => {
    for (const absent of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY]) expect(format(absent)).toBe(NOT_KNOWN)
  })
})
