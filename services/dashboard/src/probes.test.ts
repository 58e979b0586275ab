import { describe, expect, it } from 'vitest'

import { askedOf, foundOf, lastSweep, sweepPoints, toneOf, wishOf, type Probe, type ProbeStepResult } from './probes'

const STEP: ProbeStepResult = {
  rate_bps: 400e6,
  sent_bps: 400e6,
  received_bps: 396e6,
  sent: 1000,
  received: 990,
  lost: 10,
  loss: 0.01,
  reordered: 0,
  duplicated: 0,
  elapsed_us: 1_000_000,
  delay_us: null,
  jitter_us: null,
  receiver_dropped: 0,
}
const RESULT = {
  steps: [STEP, { ...STEP, rate_bps: 800e6, received_bps: 600e6, loss: 0.25 }],
  sender_lag_us: 5,
  knee_bps: 390e6,
  knee_reason: null,
  losses: 1,
  excess: null,
  variation: null,
  delay_bound_us: null,
}
const PROBE: Probe = {
  id: 7,
  site: 'unl.edu',
  kind: 'knee',
  direction: 'out',
  steps: [],
  packet_bytes: 1200,
  patience_s: 60,
  requested_by: 'eve',
  relay: null,
  state: 'done',
  reason: '',
  requested_at: '2026-01-01T00:00:00Z',
  started_at: null,
  ended_at: null,
  attempts: 1,
  schedule: null,
  circumstances: {},
  gaps: [],
  result: RESULT,
}

describe('probes in words', () => {
  it('says what was asked and found', () => {
    expect(askedOf(PROBE)).toBe('knee to the site')
    expect(askedOf({ ...PROBE, kind: 'cbr', direction: 'in' })).toBe('cbr from the site')
    expect(askedOf({ ...PROBE, relay: 'omaha' })).toBe('knee to the site, from relay omaha')
    expect(foundOf(PROBE)).toBe('knee at 390 Mb/s')
    const dropped = { ...RESULT, steps: [{ ...STEP, receiver_dropped: 3 }] }
    expect(foundOf({ ...PROBE, kind: 'cbr', result: dropped })).toContain("lost, 3 packets dropped by the receiver's host")
    expect(foundOf({ ...PROBE, result: { ...RESULT, knee_bps: null, knee_reason: 'the lowest rate lost' } })).toBe(
      'no knee: the lowest rate lost',
    )
    expect(foundOf({ ...PROBE, result: { ...RESULT, knee_reason: 'no step lost packets' } })).toBe(
      'at least 390 Mb/s: no step lost packets',
    )
    expect(foundOf({ ...PROBE, kind: 'cbr' })).toContain('396 of 400 Mb/s arrived')
    expect(foundOf({ ...PROBE, kind: 'soak', result: { ...RESULT, variation: 0.02 } })).toContain('variation')
  })

  it('gives the reason where nothing was measured', () => {
    expect(foundOf({ ...PROBE, result: null, reason: 'circuit 7 holds the rate' })).toBe('circuit 7 holds the rate')
    expect(foundOf({ ...PROBE, result: null })).toBe('not known yet')
    expect(toneOf({ ...PROBE, state: 'refused' })).toBe('bad')
    expect(toneOf({ ...PROBE, state: 'waiting' })).toBe('')
    expect(toneOf(PROBE)).toBe('good')
  })

  it('draws the newest sweep in its box', () => {
    expect(lastSweep([{ ...PROBE, kind: 'cbr' }, { ...PROBE, result: null }, PROBE])).toBe(PROBE)
    expect(lastSweep([])).toBeNull()
    expect(sweepPoints(RESULT.steps, (step) => step.received_bps, 800e6, 100, 40)).toBe('50.0,20.2 100.0,10.0')
    expect(sweepPoints(RESULT.steps, (step) => step.loss, 0, 100, 40)).toContain('100.0,')
  })

  it('leaves to the hub what the form leaves out', () => {
    expect(wishOf('unl.edu', 'knee', 'out', null, null)).toEqual({ site: 'unl.edu', kind: 'knee', direction: 'out' })
    expect(wishOf('unl.edu', 'cbr', 'in', 50.5, 30)).toEqual({
      site: 'unl.edu',
      kind: 'cbr',
      direction: 'in',
      rate_bps: 50_500_000,
      seconds: 30,
    })
  })
})
