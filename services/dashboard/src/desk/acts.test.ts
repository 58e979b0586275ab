import { expect, test } from 'vitest'
import { at, CIRCUIT, NOW } from '../fixtures/desk'
import { actsFor, addressOfAct, bodyOf, fieldsFor, outcomeText, type Act, type ActName } from './acts'
import { historyOf } from './rates'
import type { Circuit, CircuitRates, State } from './types'
import { countsText, holderText, rateText, refusalText, windowText } from './words'

const T = Date.parse(NOW)
const ADMIN = ['read', 'details', 'operate', 'admin']
const OPERATOR = ['read', 'details', 'operate']
const names = (circuit: Circuit, scopes: string[]) => actsFor(circuit, scopes).map((act) => act.name)
const act = (name: ActName, circuit: Circuit = CIRCUIT): Act => {
  const found = actsFor(circuit, ADMIN).find((one) => one.name === name)
  if (!found) throw new Error(`no ${name}`)
  return found
}

test('a viewer has no buttons, and an override is an administrator’s', () => {
  expect(names(CIRCUIT, ['read', 'details'])).toEqual([])
  const active: Circuit = { ...CIRCUIT, state: 'active' }
  expect(names(active, OPERATOR)).toEqual(['modify', 'tear-down-path', 'clone', 'cancel'])
  expect(names(active, ADMIN)).toEqual(['modify', 'tear-down-path', 'clone', 'cancel', 'override'])
  expect(names({ ...active, overridden: 'down' }, ADMIN)).toContain('clear-override')
})

test('each state has its own actions', () => {
  const inState = (state: State) => names({ ...CIRCUIT, state }, OPERATOR)
  expect(inState('held')).toEqual(['commit', 'modify', 'clone', 'cancel'])
  expect(inState('admitted')).toEqual(['modify', 'clone', 'cancel'])
  expect(inState('waiting')).toEqual(['modify', 'create-path', 'clone', 'cancel'])
  expect(inState('failed')).toEqual(['modify', 'tear-down-path', 'clone', 'cancel'])
  for (const state of ['ended', 'cancelled', 'expired', 'cancelling', 'ending'] as const) {
    expect(inState(state)).toEqual(['clone'])
  }
})

test('a change sends what differs alone', () => {
  const fields = fieldsFor(CIRCUIT, T)
  expect(bodyOf(act('modify'), CIRCUIT, fields, 'anna')).toEqual({ by: 'anna' })
  const faster = { ...fields, out_mbps: 900, end_ms: T + 3 * 3_600_000 }
  expect(bodyOf(act('modify'), CIRCUIT, faster, 'anna')).toEqual({
    rate_out_bps: 900_000_000,
    end: '2026-11-23T21:00:00.000Z',
    by: 'anna',
  })
  expect(bodyOf(act('modify'), CIRCUIT, { ...fields, end_ms: null }, 'anna')).toEqual({ end: null, by: 'anna' })
  expect(bodyOf(act('clone'), CIRCUIT, fields, 'anna')).toEqual({ begin: '2026-11-23T18:15:00.000Z', by: 'anna' })
  expect(bodyOf(act('cancel'), CIRCUIT, fields, 'anna')).toBeUndefined()
})

test('addresses carry the dry run, and the name of the user where there is no body', () => {
  expect(addressOfAct(act('modify'), 7, 'anna', true)).toBe('circuits/7?dry_run=true')
  expect(addressOfAct(act('cancel'), 7, 'anna', false)).toBe('circuits/7?dry_run=false&by=anna')
  const held: Circuit = { ...CIRCUIT, state: 'held' }
  expect(addressOfAct(act('commit', held), 7, 'anna', true)).toBe('circuits/7/commit?dry_run=true&by=anna')
})

test('the outcome of a dry run is a sentence', () => {
  const after: Circuit = { ...CIRCUIT, rate_out_bps: 900e6, end: at(4) }
  expect(outcomeText(act('modify'), CIRCUIT, after, T)).toBe(
    'Circuit 7: the rate out would change from 600 Mb/s to 900 Mb/s, it would last until Mon 23 Nov 22:00.',
  )
  const copy = 'A copy would have 900 Mb/s out, Mon 23 Nov 19:00 to 22:00.'
  expect(outcomeText(act('clone'), CIRCUIT, after, T)).toBe(copy)
  const active: Circuit = { ...CIRCUIT, state: 'active' }
  expect(outcomeText(act('override', active), active, { ...active, overridden: 'down' }, T)).toBe(
    'Circuit 7 would be shown as down. Feeds use it only while its probes allow that.',
  )
})

test('rates over time have a value for each minute, and gaps where nothing is known', () => {
  const rates: CircuitRates = {
    circuit: 7,
    step_s: 60,
    since: at(1.05),
    until: at(1.15),
    steps: [{ at: at(1.05 + 2 / 60), out_bps: 5e8, in_bps: 0 }],
  }
  const measured: Circuit = { ...CIRCUIT, measured_out_bps: 580e6, measured_at: at(1.1) }
  const history = historyOf(measured, rates)
  expect(history.times_s.length).toBe(9)
  expect(history.reserved).toEqual(Array(9).fill(600e6))
  expect(history.used).toEqual([null, null, null, 0, 0, 5e8, 0, 0, 0])
  expect(history.measured).toEqual([null, null, null, null, null, null, 580e6, 580e6, 580e6])
  expect(historyOf(CIRCUIT, { ...rates, until: at(0.5) }).times_s).toEqual([])
})

test('figures and windows read as the page writes them', () => {
  expect([2e9, 1.25e9, 1e8, 64_000, 0, 1e12].map(rateText)).toEqual([
    '2 Gb/s', '1.25 Gb/s', '100 Mb/s', '64 kb/s', '0 Mb/s', '1 Tb/s',
  ])
  expect(windowText(T, T + 7_200_000, T)).toBe('Mon 23 Nov 18:00 to 20:00')
  expect(windowText(T, T + 86_400_000, T)).toBe('Mon 23 Nov 18:00 to Tue 24 Nov 18:00')
  expect(windowText(T, null, T)).toBe('Mon 23 Nov 18:00 until it is cancelled')
  expect(countsText(['active', 'degraded', 'held', 'admitted', 'ended'])).toBe('2 active, 1 held, 1 reserved')
  expect(countsText(['ended'])).toBe('nothing is reserved here')
  const holder = { circuit: 152, rate_out_bps: 9e9, rate_in_bps: 0, end: at(2), description: 'kaist.ac.kr' }
  expect(holderText(holder, T)).toBe('Circuit 152 holds 9 Gb/s out until Mon 23 Nov 20:00 (kaist.ac.kr)')
  expect(holderText({ circuit: 3 }, T)).toBe('Circuit 3')
  const refusal = 'port a is full; ask for less; circuit 152 holds 9 Gb/s out; the nearest window begins at noon'
  expect(refusalText(refusal, [holder])).toBe('port a is full; ask for less.')
  expect(refusalText(refusal, [])).toBe(refusal)
  const test = { test: 7, kind: 'iperf3', rate_out_bps: 6e8 }
  expect(holderText(test, T)).toBe('Test 7, iperf3, holds 600 Mb/s out')
  expect(refusalText('port a is full; test 7 holds 600 Mb/s out', [test])).toBe('port a is full.')
})
