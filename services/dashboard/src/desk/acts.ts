/** The actions on a circuit: those of its state and of the rights of the user, and their words. */
import { momentText } from './scale'
import type { Circuit, State } from './types'
import { rateText, stateText, windowText } from './words'

export type ActName =
  'commit' | 'modify' | 'create-path' | 'tear-down-path' | 'clone' | 'cancel' | 'override' | 'clear-override'

export interface Act {
  name: ActName
  /** The button that opens the dialog. */
  title: string
  /** The button that acts. */
  yes: string
  method: string
  /** The address below the circuit's own; empty: its own. */
  path: string
  isDangerous: boolean
}

/** The fields of the dialogs; each action sends those that it needs. */
export interface ActFields {
  out_mbps: number | null
  in_mbps: number | null
  begin_ms: number
  end_ms: number | null
  state: 'active' | 'down'
  reason: string
}

/** The actions that somebody with these rights has on a circuit now; a viewer has none. */
export function actsFor(circuit: Circuit, scopes: readonly string[]): Act[] {
  if (!scopes.includes('operate')) return []
  const names = ORDER.filter((name) => isOffered(name, circuit, scopes.includes('admin')))
  return names.map((name) => ({ name, ...ACTS[name] }))
}

/** The fields of a circuit as it is; a clone begins at the next whole quarter of an hour. */
export function fieldsFor(circuit: Circuit, now_ms: number): ActFields {
  const quarter_ms = 15 * 60_000
  return {
    out_mbps: circuit.rate_out_bps / 1e6,
    in_mbps: circuit.rate_in_bps / 1e6,
    begin_ms: Math.ceil((now_ms + 1) / quarter_ms) * quarter_ms,
    end_ms: circuit.end === null ? null : Date.parse(circuit.end),
    state: 'down',
    reason: '',
  }
}

/** The body of an action; undefined: it has none. What stays as it is is left out of a change. */
export function bodyOf(act: Act, circuit: Circuit, fields: ActFields, by: string): Record<string, unknown> | undefined {
  if (act.name === 'clone') return { begin: new Date(fields.begin_ms).toISOString(), by }
  if (act.name === 'override') return { state: fields.state, reason: fields.reason, by }
  if (act.name === 'clear-override') return { state: null, reason: fields.reason, by }
  if (act.name !== 'modify') return undefined
  const [out_bps, in_bps] = [bps(fields.out_mbps), bps(fields.in_mbps)]
  const end = fields.end_ms === null ? null : new Date(fields.end_ms).toISOString()
  const before = circuit.end === null ? null : Date.parse(circuit.end)
  return {
    ...(out_bps !== circuit.rate_out_bps && { rate_out_bps: out_bps }),
    ...(in_bps !== circuit.rate_in_bps && { rate_in_bps: in_bps }),
    ...(fields.end_ms !== before && { end }),
    by,
  }
}

/** The address of an action. */
export function addressOfAct(act: Act, circuit: number, by: string, dryRun: boolean): string {
  const query = new URLSearchParams({ dry_run: String(dryRun) })
  if (act.method === 'DELETE' || BY_IN_QUERY.includes(act.name)) query.set('by', by)
  return `circuits/${circuit}${act.path}?${query}`
}

/** What the dry run found, in a sentence. */
export function outcomeText(act: Act, before: Circuit, after: Circuit, now_ms: number): string {
  const window = windowText(Date.parse(after.begin), after.end === null ? null : Date.parse(after.end), now_ms)
  if (act.name === 'modify') return `${changes(before, after, now_ms)}.`
  if (act.name === 'clone') return `A copy would have ${rateText(after.rate_out_bps)} out, ${window}.`
  if (act.name === 'cancel') {
    return `Circuit ${before.circuit} would be cancelled. Its rate is free immediately, and its set-up is removed.`
  }
  if (act.name === 'commit') return `Circuit ${before.circuit} would be reserved, ${window}.`
  if (act.name === 'create-path') return `The path of circuit ${before.circuit} would be created now.`
  if (act.name === 'tear-down-path') {
    return `The path of circuit ${before.circuit} would be torn down. Its reservation stays, and feeds leave it.`
  }
  if (act.name === 'clear-override') return `The state of circuit ${before.circuit} would be that of its probes again.`
  const state = stateText(after.overridden ?? after.state)
  return `Circuit ${before.circuit} would be shown as ${state}. Feeds use it only while its probes allow that.`
}

function changes(before: Circuit, after: Circuit, now_ms: number): string {
  const found = []
  const rate = (name: string, one: number, other: number) => {
    if (one !== other) found.push(`the rate ${name} would change from ${rateText(one)} to ${rateText(other)}`)
  }
  rate('out', before.rate_out_bps, after.rate_out_bps)
  rate('back', before.rate_in_bps, after.rate_in_bps)
  if (before.end !== after.end) {
    const said = after.end === null ? 'it is cancelled' : momentText(Date.parse(after.end), now_ms)
    found.push(`it would last until ${said}`)
  }
  return `Circuit ${before.circuit}: ${found.join(', ') || 'nothing would change'}`
}

function isOffered(name: ActName, circuit: Circuit, isAdmin: boolean): boolean {
  const { state } = circuit
  if (name === 'clone') return true
  if (name === 'commit') return state === 'held'
  if (name === 'create-path') return state === 'waiting'
  if (name === 'tear-down-path') return WANTED.includes(state)
  if (name === 'override') return isAdmin && WANTED.includes(state) && !circuit.overridden
  if (name === 'clear-override') return isAdmin && Boolean(circuit.overridden)
  return !GONE.includes(state)
}

function bps(mbps: number | null): number {
  return Math.round((mbps ?? 0) * 1e6)
}

const ACTS: Record<ActName, Omit<Act, 'name'>> = {
  commit: { title: 'Commit', yes: 'Commit', method: 'POST', path: '/commit', isDangerous: false },
  modify: { title: 'Modify', yes: 'Modify circuit', method: 'PATCH', path: '', isDangerous: false },
  'create-path': {
    title: 'Create path',
    yes: 'Create path now',
    method: 'POST',
    path: '/create-path',
    isDangerous: false,
  },
  'tear-down-path': {
    title: 'Tear down path',
    yes: 'Tear down path now',
    method: 'POST',
    path: '/tear-down-path',
    isDangerous: true,
  },
  clone: { title: 'Clone', yes: 'Reserve copy', method: 'POST', path: '/clone', isDangerous: false },
  cancel: { title: 'Cancel', yes: 'Cancel circuit', method: 'DELETE', path: '', isDangerous: true },
  override: { title: 'Override state', yes: 'Override', method: 'POST', path: '/override', isDangerous: true },
  'clear-override': { title: 'Clear override', yes: 'Clear', method: 'POST', path: '/override', isDangerous: false },
}
const ORDER: ActName[] = [
  'commit',
  'modify',
  'create-path',
  'tear-down-path',
  'clone',
  'cancel',
  'override',
  'clear-override',
]
const BY_IN_QUERY: ActName[] = ['commit', 'create-path', 'tear-down-path']
const WANTED: State[] = ['provisioning', 'verifying', 'active', 'degraded', 'down', 'failed']
const GONE: State[] = ['ended', 'cancelled', 'expired', 'ending', 'cancelling']
