/** The rate that is free on a path over time: that of its narrowest hop. */
import { heldByTests, rateOn, type Way } from './rows'
import type { Frame } from './scale'
import type { Calendar, CalendarReservation, Circuit } from './types'
import { lookOf } from './words'

export interface FreeStep {
  begin_ms: number
  end_ms: number
  bps: number
}

/** Steps over a frame, equal neighbours joined; empty for a circuit without links. */
export function freeSteps(circuit: Circuit, calendar: Calendar, frame: Frame): FreeStep[] {
  const sums = circuit.path.flatMap((hop) => {
    const place = calendar.resources.findIndex((one) => one.key === `link ${hop.link}`)
    return place < 0 ? [] : [freeAlong(calendar, place, hop.forward ? 'out' : 'in', circuit.circuit)]
  })
  if (sums.length === 0) return []
  const inside = sums.flatMap((sum) => sum.map((step) => step.at_ms))
  const moments = [frame.begin_ms, ...inside.filter((at) => at > frame.begin_ms && at < frame.end_ms)]
  const cuts = [...new Set(moments)].toSorted((one, other) => one - other)
  const steps: FreeStep[] = []
  for (const [at, begin_ms] of cuts.entries()) {
    const bps = Math.min(...sums.map((sum) => levelAt(sum, begin_ms)))
    const end_ms = cuts[at + 1] ?? frame.end_ms
    const last = steps.at(-1)
    if (last && last.bps === bps) last.end_ms = end_ms
    else steps.push({ begin_ms, end_ms, bps })
  }
  return steps
}

interface Level {
  at_ms: number
  /** Free from here on. */
  bps: number
}

/** The free rate of a link in a direction, as levels from moment to moment. */
function freeAlong(calendar: Calendar, place: number, way: Way, without: number): Level[] {
  const resource = calendar.resources[place]
  if (resource === undefined) return []
  const rate = way === 'out' ? resource.rate_out_bps : resource.rate_in_bps
  const held = (one: CalendarReservation) =>
    one.circuit === without || lookOf(one.state) === 'finished' ? 0 : rateOn(one, resource, place, way)
  const closed = calendar.maintenance.filter((one) => one.resources.includes(place))
  const taken = [
    ...calendar.reservations.map((one) => ({ ...one, bps: held(one) })).filter((one) => one.bps > 0),
    ...heldByTests(calendar).map((one) => ({ ...one, bps: rateOn(one, resource, place, way) })),
    ...closed.map((one) => ({ ...one, bps: rate })),
  ]
  const changes = taken.flatMap((one) => [
    { at_ms: Date.parse(one.begin), bps: one.bps },
    ...(one.end === null ? [] : [{ at_ms: Date.parse(one.end), bps: -one.bps }]),
  ])
  changes.sort((one, other) => one.at_ms - other.at_ms)
  let sum = 0
  const levels = changes.map((one) => ({ at_ms: one.at_ms, bps: rate - (sum += one.bps) }))
  return [{ at_ms: -Infinity, bps: rate }, ...levels]
}

function levelAt(levels: Level[], at_ms: number): number {
  let found = 0
  for (const level of levels) {
    if (level.at_ms > at_ms) break
    found = level.bps
  }
  return Math.max(found, 0)
}
