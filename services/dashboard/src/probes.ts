/** Probes of the path to a site, in words and as a curve. */
import type { Probe, ProbeNew, ProbeStepResult } from './api'
import { fineShare, megabits } from './format'

export type { Probe, ProbeNew, ProbeStepResult }

/** The question that a probe answers, and its way: `knee to the site`. */
export function askedOf(probe: Probe): string {
  const isOut = probe.direction === 'out'
  const words = `${probe.kind} ${isOut ? 'to the site' : 'from the site'}`
  return probe.relay === null ? words : `${words}, ${isOut ? 'from' : 'to'} relay ${probe.relay}`
}

/** The result in one line; a probe without one says its reason. */
export function foundOf(probe: Probe): string {
  const result = probe.result
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

/** The wish of the form; without a rate the hub chooses the highest one of a sweep. */
export function wishOf(
  site: string,
  kind: Probe['kind'],
  direction: Probe['direction'],
  rate_mbps: number | null,
  seconds: number | null,
): ProbeNew {
  return {
    site,
    kind,
    direction,
    ...(rate_mbps ? { rate_bps: Math.round(rate_mbps * 1e6) } : {}),
    ...(seconds ? { seconds } : {}),
  }
}
