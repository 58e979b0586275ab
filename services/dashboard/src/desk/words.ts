/** Text of the reservation desk. */
import { momentText, timeText } from './scale'
import type { CalendarResource, Holder, State } from './types'

/** A rate with the unit that reads best: `2 Gb/s`, `100 Mb/s`, `1.25 Gb/s`. */
export function rateText(bps: number): string {
  const [size, unit] = UNITS.find(([least]) => bps >= least) ?? [1e3, 'kb/s']
  if (bps === 0) return '0 Mb/s'
  return `${Number((bps / size).toPrecision(3))} ${unit}`
}

/** The look of a bar. */
export type Look = 'active' | 'reserved' | 'held' | 'finished' | 'failed' | 'test' | 'maintenance' | 'draft'

export function lookOf(state: State): Look {
  return LOOKS[state]
}

/** The machine that has a port: a site's, another network's, that of a sender of the hub, or the hub's own. */
export function ownerText(resource: Pick<CalendarResource, 'owner' | 'sender'> | null | undefined): string {
  return resource?.owner ?? (resource?.sender ? `the sender ${resource.sender}` : 'the hub')
}

/** What a state is called. */
export function stateText(state: State): string {
  return state === 'admitted' ? 'reserved' : state === 'tearing-down' ? 'tearing down' : state
}

/** `4 active, 1 failed, 1 held, 1 reserved`: what the calendar shows, finished ones left out. */
export function countsText(states: State[]): string {
  const counted = COUNTED.map((look) => [look, states.filter((one) => lookOf(one) === look).length] as const)
  const told = counted.filter(([, count]) => count > 0).map(([look, count]) => `${count} ${look}`)
  return told.join(', ') || 'nothing is reserved here'
}

/** `Circuit 152 holds 9 Gb/s out until 20:00 (kaist.ac.kr)`. */
export function holderText(holder: Holder, now_ms: number): string {
  const rate = holder.rate_out_bps === undefined ? '' : ` holds ${rateText(holder.rate_out_bps)} out`
  const back = holder.rate_in_bps ? ` and ${rateText(holder.rate_in_bps)} in` : ''
  const end = holder.end ? momentText(Date.parse(holder.end), now_ms) : 'it is cancelled'
  const until = holder.end === undefined ? '' : ` until ${end}`
  const by = holder.description ? ` (${holder.description})` : ''
  const name = holder.test === undefined ? `Circuit ${holder.circuit}` : `Test ${holder.test}, ${holder.kind},`
  return `${name}${rate}${back}${until}${by}`
}

/** The sentence of a refusal; its clauses about those in the way are left out where they are listed below it. */
export function refusalText(sentence: string, holders: Holder[]): string {
  const first = holders[0]
  const name = first?.test === undefined ? `circuit ${first?.circuit}` : `test ${first.test}`
  const at = first ? sentence.indexOf(`; ${name} holds`) : -1
  return at < 0 ? sentence : `${sentence.slice(0, at)}.`
}

/** `Mon 23 Nov 20:00 to 22:00`, with the second day only if it differs. */
export function windowText(begin_ms: number, end_ms: number | null, now_ms: number): string {
  if (end_ms === null) return `${momentText(begin_ms, now_ms)} until it is cancelled`
  const isOneDay = momentText(begin_ms).slice(0, -6) === momentText(end_ms).slice(0, -6)
  return `${momentText(begin_ms, now_ms)} to ${isOneDay ? timeText(end_ms) : momentText(end_ms, now_ms)}`
}

const UNITS = [
  [1e12, 'Tb/s'],
  [1e9, 'Gb/s'],
  [1e6, 'Mb/s'],
] as const
const COUNTED = ['active', 'failed', 'held', 'reserved'] as const
const LOOKS: Record<State, Look> = {
  requested: 'reserved',
  held: 'held',
  admitted: 'reserved',
  waiting: 'reserved',
  provisioning: 'reserved',
  verifying: 'reserved',
  active: 'active',
  degraded: 'active',
  down: 'failed',
  failed: 'failed',
  'tearing-down': 'reserved',
  ending: 'finished',
  cancelling: 'finished',
  ended: 'finished',
  cancelled: 'finished',
  expired: 'finished',
}
