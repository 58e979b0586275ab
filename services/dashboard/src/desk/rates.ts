/** The rates of a circuit over time for a chart: reserved, measured and used. */
import type { Circuit, CircuitRates } from './types'

export interface RateHistory {
  times_s: number[]
  reserved: (number | null)[]
  measured: (number | null)[]
  used: (number | null)[]
}

/** Columns for a chart, a step each; a step without traffic used nothing, one before the record is not known. */
export function historyOf(circuit: Circuit, rates: CircuitRates): RateHistory {
  const step_ms = rates.step_s * 1000
  const until_ms = Date.parse(rates.until)
  const begin_ms = Math.max(Date.parse(circuit.begin), until_ms - HOURS * 3_600_000)
  const first_ms = Math.floor(begin_ms / step_ms) * step_ms
  const count = Math.max(Math.floor((until_ms - first_ms) / step_ms), 0)
  const times_s = Array.from({ length: count }, (_, index) => (first_ms + index * step_ms) / 1000)
  const used = new Map(rates.steps.map((step) => [Date.parse(step.at) / 1000, step.out_bps]))
  const since_s = Date.parse(rates.since) / 1000
  const end_s = circuit.end === null ? Infinity : Date.parse(circuit.end) / 1000
  const measured_s = circuit.measured_at === null ? Infinity : Date.parse(circuit.measured_at) / 1000
  return {
    times_s,
    reserved: times_s.map((at) => (at < end_s ? circuit.rate_out_bps : null)),
    // The last measurement holds until the next one.
    measured: times_s.map((at) => (at + rates.step_s > measured_s && at < end_s ? circuit.measured_out_bps : null)),
    used: times_s.map((at) => (at >= since_s ? (used.get(at) ?? 0) : null)),
  }
}

const HOURS = 6
