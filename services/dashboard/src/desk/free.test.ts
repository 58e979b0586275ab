import { expect, test } from 'vitest'
import { at, CALENDAR, CIRCUIT, RESERVATION } from '../fixtures/desk'
import { freeSteps } from './free'

const FRAME = { begin_ms: Date.parse(at(0)), end_ms: Date.parse(at(10)) }
const said = (calendar: typeof CALENDAR, circuit = CIRCUIT) =>
  freeSteps(circuit, calendar, FRAME).map((step) => [
    (step.begin_ms - FRAME.begin_ms) / 3_600_000,
    (step.end_ms - FRAME.begin_ms) / 3_600_000,
    step.bps,
  ])

test('the narrowest hop decides, and the circuit itself does not count', () => {
  expect(said(CALENDAR)).toEqual([[0, 10, 1e9]])
  expect(said({ ...CALENDAR, reservations: [RESERVATION] })).toEqual([[0, 10, 1e9]])
  const other = { ...RESERVATION, circuit: 8, begin: at(-2), end: at(3) }
  const long = { ...RESERVATION, circuit: 9, begin: at(2), end: null, rate_out_bps: 100e6 }
  expect(said({ ...CALENDAR, reservations: [other, long] })).toEqual([
    [0, 2, 400e6],
    [2, 3, 300e6],
    [3, 10, 900e6],
  ])
})

test('nothing is free during maintenance, and what has finished holds nothing', () => {
  const maintenance = [{ name: 'work', reason: '', begin: at(4), end: at(5), resources: [2] }]
  expect(said({ ...CALENDAR, maintenance })).toEqual([[0, 4, 1e9], [4, 5, 0], [5, 10, 1e9]])
  const ended = { ...RESERVATION, circuit: 8, state: 'ended' as const }
  expect(said({ ...CALENDAR, reservations: [ended] })).toEqual([[0, 10, 1e9]])
})

test('a circuit without links has no chart', () => {
  expect(said(CALENDAR, { ...CIRCUIT, path: [] })).toEqual([])
})
