import { describe, expect, it } from 'vitest'

import {
  askedOf,
  excessRows,
  foundOf,
  lastSweep,
  requestOf,
  sweepPoints,
  toneOf,
  trialRows,
  type Probe,
  type ProbeFields,
  type ProbeStepResult,
  type ProbeTrialResult,
} from './probes'

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
  congestion: null,
  retransmits: null,
  trials: null,
}
const FLOW = {
  congestion: 'cubic',
  reverse: false,
  goodput_bps: 60e6,
  retransmits: 3,
  round_trip_us: { min: 1, mean: 2 },
}
const TRIAL: ProbeTrialResult = {
  duration_ms: 10_000,
  reason: null,
  fairness: 0.8,
  limited: false,
  flows: [FLOW, { ...FLOW, congestion: 'bbr', goodput_bps: 20e6 }, { ...FLOW, congestion: 'reno', reverse: true }],
  shares: [0.75, 0.25, 1],
}
const FIELDS: ProbeFields = {
  kind: 'knee',
  direction: 'out',
  transport: 'udp',
  congestion: '',
  rate_mbps: null,
  seconds: null,
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
  transport: 'udp',
  congestion: null,
  trials: [],
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
    const words = foundOf({ ...PROBE, kind: 'cbr', result: dropped })
    expect(words).toContain("lost, 3 packets dropped by the receiver's host")
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

  it('compares stacks by their flows', () => {
    const missing = { ...TRIAL, reason: 'bbr is not available', fairness: null, flows: [], shares: [] }
    const result = { ...RESULT, trials: [TRIAL, missing] }
    const stacks: Probe = { ...PROBE, kind: 'stacks', transport: 'tcp', result }
    expect(askedOf(stacks)).toBe('stacks to the site')
    expect(foundOf(stacks)).toBe('1 of 2 trials ran, the least fair 0.80 with cubic beside bbr')
    const rows = trialRows(stacks)
    expect(rows.map((row) => [row.name, row.share, row.fairness, row.problem])).toEqual([
      ['1: cubic', 0.75, '0.80', null],
      ['1: bbr', 0.25, '', null],
      ['1: reno (reverse)', 1, '', null],
      ['2', null, '', 'bbr is not available'],
    ])
    expect(trialRows(PROBE)).toEqual([])
    const limited = trialRows({ ...stacks, result: { ...RESULT, trials: [{ ...TRIAL, limited: true }] } })
    expect(limited[0]?.goodput).toContain('(limit reached)')
  })

  it('sets the recovery after a loss beside its prediction', () => {
    const one = { at_us: 500_000, lost: 0, excess_us: 41_000, recovery_us: 150_000 }
    const known = { ...one, peak_bps: 97e6, backlog_bytes: 480_000, predicted_us: 170_000 }
    const unknown = { ...known, predicted_us: null }
    const excess = [known, { ...unknown, recovery_us: null }, { ...unknown, peak_bps: null }]
    const rows = excessRows({ ...PROBE, kind: 'cbr', transport: 'tcp', result: { ...RESULT, excess } })
    expect(rows.map((row) => [row.at, row.recovered === 'never', row.predicted])).toEqual([
      ['0.500 s', false, rows[0]?.predicted],
      ['0.500 s', true, 'never'],
      ['0.500 s', false, ''],
    ])
    expect(rows[0]?.predicted).toContain('170')
    expect(excessRows(PROBE)).toEqual([])
  })

  it('leaves to the hub what the form leaves out', () => {
    expect(requestOf('unl.edu', FIELDS)).toEqual({ site: 'unl.edu', kind: 'knee', direction: 'out' })
    expect(requestOf('unl.edu', { ...FIELDS, kind: 'cbr', direction: 'in', rate_mbps: 50.5, seconds: 30 })).toEqual({
      site: 'unl.edu',
      kind: 'cbr',
      direction: 'in',
      rate_bps: 50_500_000,
      seconds: 30,
    })
  })

  it('requests TCP and its congestion controls where they apply', () => {
    const tcp: ProbeFields = { ...FIELDS, transport: 'tcp', congestion: 'cubic, bbr' }
    expect(requestOf('a', { ...tcp, kind: 'knee' })).toEqual({ site: 'a', kind: 'knee', direction: 'out' })
    const one = requestOf('a', { ...tcp, kind: 'cbr', congestion: ' bbr ' })
    expect(one).toMatchObject({ transport: 'tcp', congestion: 'bbr' })
    expect(requestOf('a', { ...tcp, kind: 'stacks' })).toEqual({
      site: 'a',
      kind: 'stacks',
      direction: 'out',
      stacks: ['cubic', 'bbr'],
    })
  })
})
