/** TCP profiles in words. */
import type { TcpKnobs, TcpProfile, TcpTrial } from './api'
import { megabits } from './format'

export type { TcpKnobs, TcpProfile, TcpTrial }

/** The set values: `bbr, send buffer 8 MiB, 4 connections`. */
export function knobsOf(knobs: TcpKnobs): string {
  const parts = []
  if (knobs.congestion !== null) parts.push(knobs.congestion)
  if (knobs.send_buffer_bytes !== null) parts.push(`send buffer ${size(knobs.send_buffer_bytes)}`)
  if (knobs.receive_buffer_bytes !== null) parts.push(`receive buffer ${size(knobs.receive_buffer_bytes)}`)
  if (knobs.pacing_bps !== null) parts.push(`${megabits(knobs.pacing_bps)} Mb/s per connection`)
  if (knobs.connections !== null) parts.push(connections(knobs.connections))
  return parts.join(', ') || 'the kernel’s values'
}

/** The values of a profile that apply outside a trial. */
export function valuesOf(profile: TcpProfile): string {
  if (profile.mode !== 'learn') return knobsOf(profile.knobs)
  return profile.learnt === null ? 'nothing learnt yet' : `learnt: ${knobsOf(profile.learnt)}`
}

/** The step of a trial. */
export function stepOf(trial: TcpTrial): string {
  return STEPS[trial.step]
}

/** The figures of a trial: the rates with and without the candidate, and their ratio. */
export function figuresOf(trial: TcpTrial): string {
  if (trial.canary_bps === null || trial.others_bps === null) {
    return `${connections(trial.canaries)} with it, ${trial.others} without`
  }
  const ratio = trial.ratio === null ? '' : ` (${trial.ratio.toFixed(2)} times)`
  const windows = trial.windows === 1 ? '1 window' : `${trial.windows} windows`
  return `${megabits(trial.canary_bps)} Mb/s with it, ${megabits(trial.others_bps)} without${ratio}, ${windows}`
}

function connections(count: number): string {
  return count === 1 ? '1 connection' : `${count} connections`
}

function size(bytes: number): string {
  const [factor, unit] = UNITS.find(([one]) => bytes % one === 0) ?? [1, 'bytes']
  return `${(bytes / factor).toLocaleString('en')} ${unit}`
}

const STEPS: Record<TcpTrial['step'], string> = {
  began: 'on trial',
  kept: 'kept',
  'not-better': 'not better',
  'taken-back': 'taken back',
}
const UNITS: [number, string][] = [
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
]
