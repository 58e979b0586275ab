import { expect, test } from 'vitest'
import { figuresOf, knobsOf, stepOf, valuesOf, type TcpProfile, type TcpTrial } from './tuning'

const NONE = {
  congestion: null,
  send_buffer_bytes: null,
  receive_buffer_bytes: null,
  pacing_bps: null,
  connections: null,
}
const TRIAL: TcpTrial = {
  step: 'kept',
  knobs: { ...NONE, congestion: 'bbr' },
  before: NONE,
  canaries: 1,
  others: 3,
  canary_bps: 24_000_000,
  others_bps: 15_000_000,
  ratio: 1.6,
  windows: 2,
  reason: 'faster',
  at: '2026-03-14T15:02:11+00:00',
  sender: '',
}
const PROFILE: TcpProfile = {
  profile: 'overseas',
  prefix: '192.0.2.0/24',
  mode: 'trial',
  knobs: TRIAL.knobs,
  learnt: null,
  trial: TRIAL,
  created_at: null,
  changed_at: null,
}

test('the values of a profile are named with their units', () => {
  expect(knobsOf(NONE)).toBe('the kernel’s values')
  const all = {
    congestion: 'bbr',
    send_buffer_bytes: 8 * 2 ** 20,
    receive_buffer_bytes: 5001,
    pacing_bps: 50_000_000,
    connections: 4,
  }
  expect(knobsOf(all)).toBe(
    'bbr, send buffer 8 MiB, receive buffer 5,001 bytes, 50.0 Mb/s per connection, 4 connections',
  )
  expect(knobsOf({ ...NONE, connections: 1 })).toBe('1 connection')
})

test('a profile that learns shows what it learnt', () => {
  expect(valuesOf(PROFILE)).toBe('bbr')
  const learns = { ...PROFILE, mode: 'learn', knobs: NONE } as const
  expect(valuesOf(learns)).toBe('nothing learnt yet')
  expect(valuesOf({ ...learns, learnt: { ...NONE, connections: 4 } })).toBe('learnt: 4 connections')
})

test('a trial has its step and its figures, as far as they were measured', () => {
  expect(stepOf({ ...TRIAL, step: 'taken-back' })).toBe('taken back')
  expect(figuresOf(TRIAL)).toBe('24.0 Mb/s with it, 15.0 without (1.60 times), 2 windows')
  expect(figuresOf({ ...TRIAL, ratio: null, windows: 1 })).toBe('24.0 Mb/s with it, 15.0 without, 1 window')
  expect(figuresOf({ ...TRIAL, step: 'began', canary_bps: null })).toBe('1 connection with it, 3 without')
})
