/** Probes of the path to a site, in words and as a curve. */
import type { Probe, ProbeNew, ProbeStepResult, ProbeTrialResult } from './api'
import { fineShare, latency, megabits } from './format'

export type { Probe, ProbeNew, ProbeStepResult, ProbeTrialResult }

/** The question that a probe answers, and its way: `knee to the site`. */
export function askedOf(probe: Probe): string {
  const isOut = probe.direction === 'out'
  const over = probe.transport === 'tcp' && probe.kind !== 'stacks' ? ' over TCP' : ''
  const words = `${probe.kind}${over} ${isOut ? 'to the site' : 'from the site'}`
  return probe.relay === null ? words : `${words}, ${isOut ? 'from' : 'to'} relay ${probe.relay}`
}

/** The result in one line; a probe without one says its reason. */
export function foundOf(probe: Probe): string {
  const result = probe.result
  if (result?.trials?.length) return comparedOf(result.trials)
  const step = result?.steps[0]
  if (!result || !step) return probe.reason || 'not known yet'
  if (probe.kind === 'knee') {
    if (result.knee_bps === null) return `no knee: ${result.knee_reason ?? 'not known'}`
    const rate = `${megabits(result.knee_bps)} Mb/s`
    return result.knee_reason === null ? `knee at ${rate}` : `at least ${rate}: ${result.knee_reason}`
  }
  const arrived = `${megabits(step.received_bps)} of ${megabits(step.rate_bps)} Mb/s arrived`
  const dropped = step.receiver_dropped ? `, ${step.receiver_dropped} packets dropped by the receiver's host` : ''
  const words = `${arrived}, ${fineShare(step.loss)} lost${dropped}`
  return result.variation === null ? words : `${words}, variation ${fineShare(result.variation)}`
}

/** The least fair trial, which is the news of a comparison. */
function comparedOf(trials: ProbeTrialResult[]): string {
  const ran = trials.filter((one) => one.reason === null)
  const words = `${ran.length} of ${trials.length} trials ran`
  const fair = ran.filter((one) => one.fairness !== null)
  if (fair.length === 0) return words
  const least = fair.reduce((one, other) => ((other.fairness ?? 1) < (one.fairness ?? 1) ? other : one))
  const names = least.flows.filter((flow) => !flow.reverse).map((flow) => flow.congestion)
  return `${words}, the least fair ${least.fairness?.toFixed(2)} with ${names.join(' beside ')}`
}

/** A flow of a trial as a row. */
export interface TrialRow {
  key: string
  name: string
  goodput: string
  share: number | null
  retransmits: number | null
  /** Beside the first flow of a trial. */
  fairness: string
  /** The reason why the trial did not run; null: it ran. */
  problem: string | null
}

/** The flows of all trials, in order; a trial that did not run is one row. */
export function trialRows(probe: Probe): TrialRow[] {
  return (probe.result?.trials ?? []).flatMap((trial, at) => flowRows(trial, at + 1))
}

function flowRows(trial: ProbeTrialResult, number: number): TrialRow[] {
  const empty = { goodput: '', share: null, retransmits: null, fairness: '', problem: null }
  if (trial.reason !== null) return [{ ...empty, key: `${number}`, name: `${number}`, problem: trial.reason }]
  const limited = trial.limited ? ' (limit reached)' : ''
  return trial.flows.map((flow, at) => ({
    ...empty,
    key: `${number} ${at}`,
    name: `${number}: ${flow.congestion}${flow.reverse ? ' (reverse)' : ''}`,
    goodput: megabits(flow.goodput_bps) + limited,
    share: trial.shares[at] ?? null,
    retransmits: flow.retransmits,
    fairness: at === 0 && trial.fairness !== null ? trial.fairness.toFixed(2) : '',
  }))
}

/** A loss and its cost as a row. */
export interface ExcessRow {
  key: number
  at: string
  excess: string
  recovered: string
  predicted: string
}

/** The first losses, with the recovery as measured and as predicted. */
export function excessRows(probe: Probe): ExcessRow[] {
  return (probe.result?.excess ?? []).slice(0, MOST_LOSSES).map((one, key) => ({
    key,
    at: `${(one.at_us / 1e6).toFixed(3)} s`,
    excess: latency(one.excess_us / 1e3),
    recovered: one.recovery_us === null ? 'never' : latency(one.recovery_us / 1e3),
    predicted: one.predicted_us !== null ? latency(one.predicted_us / 1e3) : one.peak_bps !== null ? 'never' : '',
  }))
}

/** The tone of a state. */
export function toneOf(probe: Probe): string {
  if (probe.state === 'done') return 'good'
  return probe.state === 'failed' || probe.state === 'refused' ? 'bad' : ''
}

/** The newest sweep with a curve, of a list with the newest first. */
export function lastSweep(probes: Probe[]): Probe | null {
  return probes.find((one) => one.kind === 'knee' && (one.result?.steps.length ?? 0) > 1) ?? null
}

/** The points of a sweep in a box, rates asked for along, a value upwards: `x,y x,y`. */
export function sweepPoints(
  steps: ProbeStepResult[],
  of: (step: ProbeStepResult) => number,
  most: number,
  width: number,
  height: number,
): string {
  const widest = Math.max(...steps.map((step) => step.rate_bps), 1)
  const place = (step: ProbeStepResult) => {
    const x = (step.rate_bps / widest) * width
    const y = height - (Math.min(of(step), most) / Math.max(most, Number.MIN_VALUE)) * height
    return `${x.toFixed(1)},${y.toFixed(1)}`
  }
  return steps.map(place).join(' ')
}

/** The fields of the form. */
export interface ProbeFields {
  kind: Probe['kind']
  direction: Probe['direction']
  transport: Probe['transport']
  /** A name, or several of `stacks` with commas; empty: the hub's default. */
  congestion: string
  rate_mbps: number | null
  seconds: number | null
}

/** The request of the form; without a rate the hub chooses the highest one of a sweep. */
export function requestOf(site: string, fields: ProbeFields): ProbeNew {
  const { kind, direction, rate_mbps, seconds } = fields
  const controls = fields.congestion.split(/[\s,]+/).filter((name) => name !== '')
  const tcp = (kind === 'cbr' || kind === 'soak') && fields.transport === 'tcp'
  return {
    site,
    kind,
    direction,
    ...(rate_mbps ? { rate_bps: Math.round(rate_mbps * 1e6) } : {}),
    ...(seconds ? { seconds } : {}),
    ...(tcp ? { transport: 'tcp' as const } : {}),
    ...(tcp && controls[0] ? { congestion: controls[0] } : {}),
    ...(kind === 'stacks' && controls.length > 0 ? { stacks: controls } : {}),
  }
}

const MOST_LOSSES = 20
