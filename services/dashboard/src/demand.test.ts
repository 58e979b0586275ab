import { expect, test } from 'vitest'
import {
  budgetOf,
  fieldsOf,
  merged,
  NO_OFFER,
  offerOf,
  ratesOf,
  reserved_s,
  setupsOf,
  stepOf,
  textsOf,
  windowOf,
} from './demand'
import { NOW, OFFER, ORDER } from './fixtures/demand'

test('the set-up time has the statement and the measurement', () => {
  expect(setupsOf(OFFER)).toEqual({
    stated: '60 s stated',
    measured: 'measured: median 1.20 s, p90 2.30 s (14 orders)',
  })
  const once = { ...OFFER, measured: { count: 1, median_s: 1, p90_s: 1 } }
  expect(setupsOf(once).measured).toContain('(1 order)')
  expect(setupsOf({ ...OFFER, measured: null }).measured).toBe('not measured yet')
})

test('a budget has its use today, and a share up to the whole', () => {
  expect(budgetOf(OFFER)).toEqual([
    { text: '3.2 of 12 circuit-hours', share: 3.2 / 12 },
    { text: '30 orders, no limit', share: null },
  ])
  const over = { ...OFFER, circuit_hours_a_day: 3, orders_a_day: 0 }
  expect(budgetOf(over).map((one) => one.share)).toEqual([1, 1])
})

test('an offer is the same after its way through the form', () => {
  const { provider, hub_port, ports, rates_bps, price, setup_s, least_hold_s } = OFFER
  const budget = { circuit_hours_a_day: 12, orders_a_day: null }
  const written = { provider, hub_port, ports, rates_bps, price, setup_s, least_hold_s, ...budget }
  expect(offerOf(fieldsOf(OFFER))).toEqual(written)
  expect(ratesOf(rates_bps)).toBe('100, 200, 1000')
})

test('rates may be typed in any order, and a rate that is no number is refused with a sentence', () => {
  const fields = { ...NO_OFFER, ports: 'a, b;c', rates_mbps: '200, 0.5 100', setup_s: null }
  expect(offerOf(fields)).toMatchObject({
    ports: ['a', 'b', 'c'],
    rates_bps: [500_000, 100_000_000, 200_000_000],
    setup_s: 0,
  })
  expect(() => offerOf({ ...fields, rates_mbps: '100 fast' })).toThrow('The rate “fast” is not a number of Mb/s.')
})

test('a step is wanted, unwanted or neither', () => {
  const tones = (['would-order', 'ordered', 'up', 'releasing', 'ended', 'refused', 'failed'] as const).map((step) => {
    const { text, tone } = stepOf({ ...ORDER, step })
    return `${text} ${tone}`
  })
  expect(tones).toEqual([
    'dry run quiet',
    'ordered quiet',
    'up good',
    'releasing quiet',
    'ended quiet',
    'refused bad',
    'failed bad',
  ])
})

test('a circuit is reserved from the order to its end, or until now', () => {
  expect(reserved_s(ORDER, NOW)).toBe(240)
  expect(windowOf(ORDER, NOW)).toBe('4 min')
  const open = { ...ORDER, ended_at: null, step: 'up' } as const
  expect(windowOf(open, NOW)).toBe('9 min so far, until 15:10:00Z')
  expect(windowOf({ ...open, step: 'refused' }, NOW)).toBe('–')
  expect(reserved_s({ ...open, ordered_at: '2026-03-14T15:10:00Z' }, NOW)).toBe(0)
})

test('orders that arrive replace themselves, the newest first', () => {
  const up = { ...ORDER, step: 'up' } as const
  const all = merged([up, { ...ORDER, order: 5 }], [ORDER, { ...ORDER, order: 9 }])
  expect(all.map((order) => [order.order, order.step])).toEqual([
    [9, 'ended'],
    [7, 'ended'],
    [5, 'ended'],
  ])
})

test('the text fields of a provider are empty where nothing is set', () => {
  expect(new Set(Object.values(textsOf(null)))).toEqual(new Set(['']))
})
