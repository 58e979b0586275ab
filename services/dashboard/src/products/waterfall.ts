/** Deliveries of a product on one linear axis, whose zero is the time at which the hub stored the product. */
import type { Delivery, DeliveryState, Stage } from '../api'
import { latency } from '../format'
import type { MarkedState } from '../ui/marks/states'

export interface Axis {
  from_ms: number
  to_ms: number
  ticks_ms: number[]
  /** The product was created before the left edge. */
  isCut: boolean
}

/** A stage on the axis; `left` and `width` in per cent of it. */
export interface Part {
  stage: string
  ms: number
  bound_ms: number | null
  left: number
  width: number
}

/** An axis on which every stored delivery has its place, and the objectives that are not far beyond them. */
export function axisOf(deliveries: readonly Delivery[], waited_ms: number): Axis {
  const reach_ms = Math.max(...deliveries.map(end_ms), 0) || Math.max(waited_ms, 0)
  const objectives = deliveries.flatMap((one) => (one.objective_ms === null ? [] : [one.objective_ms]))
  const near = objectives.filter((ms) => reach_ms === 0 || ms <= reach_ms * FAR)
  const to_ms = Math.max(reach_ms, ...near, LEAST_MS) * HEADROOM
  const before_ms = Math.max(...deliveries.map((one) => before(one.timing.stages)), 0)
  const from_ms = -Math.min(before_ms, to_ms * MOST_BEFORE)
  return { from_ms, to_ms, ticks_ms: ticks(to_ms), isCut: before_ms > -from_ms }
}

/** The place of a moment on the axis in per cent. */
export function placeOf(ms: number, { from_ms, to_ms }: Axis): number {
  return (100 * (ms - from_ms)) / (to_ms - from_ms)
}

/** The stages behind each other. A negative one, by a wrong clock, is named but has no length. */
export function partsOf(stages: readonly Stage[], axis: Axis): Part[] {
  let at_ms = -Math.min(before(stages), -axis.from_ms)
  return known(stages).map(({ stage, ms, bound_ms }) => {
    const length_ms = stage === 'origin' ? -at_ms : Math.max(ms, 0)
    const left = placeOf(at_ms, axis)
    at_ms += length_ms
    return { stage, ms, bound_ms, left, width: placeOf(at_ms, axis) - left }
  })
}

/** The stages of which some delivery has a time, in their order. */
export function stagesOf(deliveries: readonly Delivery[]): string[] {
  const found = new Set(deliveries.flatMap((one) => known(one.timing.stages).map(({ stage }) => stage)))
  return STAGES.filter((stage) => found.has(stage))
}

/** The dashed lines of the axis in words. */
export function objectiveNote(deliveries: readonly Delivery[], axis: Axis): string {
  const known = new Set(deliveries.flatMap(({ objective_ms }) => objective_ms ?? []))
  const all = [...known].toSorted((one, other) => one - other)
  const [least, most] = [all[0], all.at(-1)]
  if (least === undefined || most === undefined) return ''
  const words = least === most ? `objective ${latency(least)}` : `objectives of ${latency(least)} to ${latency(most)}`
  if (least > axis.to_ms) return `The ${words} ${least === most ? 'is' : 'are'} beyond the axis.`
  return `Dashed: ${words}.`
}

/** The time from the hub's log to the file, or to the last stage that is known. */
export function end_ms({ timing }: Delivery): number {
  return inside(timing.stages).reduce((sum, stage) => sum + Math.max(stage.ms, 0), 0)
}

/** A delivery in a word and a mark. */
export interface Verdict {
  mark: MarkedState
  words: string
  /** It has the product, and had it in time. */
  isGood: boolean
}

export function verdictOf({ state, timing, objective_ms }: Delivery, waited_ms: number): Verdict {
  const bad = (mark: MarkedState, words = spoken(state)) => ({ mark, words, isGood: false })
  if (state === 'stored') {
    if (isBeyond(timing.distribution_ms, objective_ms)) return bad('warning', 'stored, late')
    const mark = timing.distribution_ms === null ? 'unknown' : 'within'
    return { mark, words: spoken(state), isGood: mark === 'within' }
  }
  if (state === 'not-subscribed') return bad('unknown')
  if (!isUnderWay(state)) return bad('critical')
  return bad(isBeyond(waited_ms, objective_ms) ? 'critical' : 'catching-up')
}

/** `unl.edu: stored 12.4 s after the objective`. */
export function titleOf({ site, state, timing, objective_ms }: Delivery): string {
  const ms = timing.distribution_ms
  if (state !== 'stored' || ms === null) return `${site}: ${spoken(state)}`
  const late_ms = objective_ms === null ? 0 : ms - objective_ms
  return `${site}: stored ${late_ms > 0 ? `${latency(late_ms)} after the objective` : `after ${latency(ms)}`}`
}

/** Whether the product may still come. */
export function isUnderWay(state: DeliveryState): boolean {
  return UNDER_WAY.includes(state)
}

/** One sentence on all sites: `90 of 92 sites had it within the objective; snu.ac.kr was late; psu.edu waits`. */
export function headline(deliveries: readonly Delivery[], waited_ms: number): string {
  const wanted = deliveries.filter((one) => one.state !== 'not-subscribed')
  if (wanted.length === 0) return 'No site subscribes to it'
  const good = wanted.filter((one) => verdictOf(one, waited_ms).isGood).length
  const all = `${good} of ${wanted.length} ${wanted.length === 1 ? 'site' : 'sites'} had it within the objective`
  const others = GROUPS.map(({ is, one, many }) => {
    const its = wanted.filter((delivery) => is(delivery, verdictOf(delivery, waited_ms)))
    if (its.length === 0) return ''
    const names = its.length > MOST_NAMES ? its.length : its.map(({ site }) => site).join(' and ')
    return `${names} ${its.length === 1 ? one : many}`
  })
  return [all, ...others].filter(Boolean).join('; ')
}

const GROUPS: { is(delivery: Delivery, verdict: Verdict): boolean; one: string; many: string }[] = [
  { is: ({ state }) => state !== 'stored' && !isUnderWay(state), one: 'does not get it', many: 'do not get it' },
  { is: ({ state }) => isUnderWay(state), one: 'waits', many: 'wait' },
  { is: (_, { mark }) => mark === 'warning', one: 'was late', many: 'were late' },
  {
    is: ({ state }, { mark }) => state === 'stored' && mark === 'unknown',
    one: 'has it, its latency is not known',
    many: 'have it, their latencies are not known',
  },
]

/** Steps of 1, 2 or 5 from zero on, at most six. */
function ticks(to_ms: number): number[] {
  const rough = to_ms / MOST_TICKS
  const decade = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * decade).find((one) => one >= rough) ?? rough
  return Array.from({ length: Math.floor(to_ms / step) + 1 }, (_, at) => at * step)
}

type Known = Stage & { ms: number }

function known(stages: readonly Stage[]): Known[] {
  return stages.filter((one): one is Known => one.ms !== null && one.ms !== 0 && (one.stage !== 'origin' || one.ms > 0))
}

function inside(stages: readonly Stage[]): Known[] {
  return known(stages).filter((one) => one.stage !== 'origin')
}

/** The age of the product when the hub stored it, by its source's clock. */
function before(stages: readonly Stage[]): number {
  return known(stages).find((one) => one.stage === 'origin')?.ms ?? 0
}

function isBeyond(ms: number | null, objective_ms: number | null): boolean {
  return ms !== null && objective_ms !== null && ms > objective_ms
}

function spoken(state: DeliveryState): string {
  return state.replace('-', ' ')
}

const STAGES = ['origin', 'queue', 'transfer', 'hub-to-last-byte', 'store', 'action']
const UNDER_WAY: DeliveryState[] = ['waiting', 'sending', 'repairing']
/** An objective beyond so many times the longest delivery would press the bars together. */
const FAR = 3
const HEADROOM = 1.04
const LEAST_MS = 1
/** The part of the axis for the way to the hub, at most. */
const MOST_BEFORE = 0.2
const MOST_TICKS = 6
const MOST_NAMES = 2
