/** The network as a graph: hubs and sources, this hub, its relays and groups, and the sites. */
import type { Transport } from '../../api'
import type { MarkedState } from '../../ui/marks/states'

export type NodeKind = 'source' | 'hub' | 'relay' | 'group' | 'direct' | 'site'

export interface NetNode {
  /** Stands in addresses: `site~unl.edu`. */
  id: string
  kind: NodeKind
  name: string
  /** Null: it has no state of its own. */
  mark: MarkedState | null
  /** The state in words. */
  words: string
  /** One more fact: an organisation, or the feeds of a group. */
  detail: string
  feeds: readonly string[]
  /** The node below which the tree has it; null: it is a root. */
  parent: string | null
  /** Its column, from the left. */
  layer: number
}

/** Transports, and two things that are none: another protocol, and a feed that was not sent yet. */
export type Way = Transport | 'ldm' | 'not-sent'

export interface NetEdge {
  from: string
  to: string
  way: Way
  feeds: readonly string[]
  /** Ordered circuits that carry it. */
  circuits: readonly number[]
  /** Measured by the hub or by a relay; null: not measured. */
  rate_bps: number | null
  /** Whether something can pass now: both ends are connected. */
  isLive: boolean
}

export interface Network {
  nodes: ReadonlyMap<string, NetNode>
  edges: readonly NetEdge[]
  /** By parent, the nodes below it, in the order of the tree. */
  children: ReadonlyMap<string, readonly NetNode[]>
}

export const HUB = 'hub'

export function idOf(kind: 'source' | 'ldm' | 'relay' | 'site', name: string): string {
  return `${kind}~${name}`
}

/** The number of sites of a parent from which on the graph begins with them folded into one node. */
export const FOLDED_FROM = 31

/** The order of marks, the worst first. */
export const WORST_FIRST: readonly MarkedState[] = [
  'critical',
  'warning',
  'catching-up',
  'unknown',
  'info',
  'never',
  'within',
]

export function worstOf(marks: readonly (MarkedState | null)[]): MarkedState | null {
  return WORST_FIRST.find((one) => marks.includes(one)) ?? null
}

export function byBadness(one: NetNode, other: NetNode): number {
  return badness(one) - badness(other) || one.name.localeCompare(other.name)
}

function badness({ mark }: NetNode): number {
  return mark === null ? WORST_FIRST.length : WORST_FIRST.indexOf(mark)
}

export function groupedBy<Key, Value>(values: Iterable<Value>, keyOf: (value: Value) => Key): Map<Key, Value[]> {
  const groups = new Map<Key, Value[]>()
  for (const value of values) {
    const group = groups.get(keyOf(value))
    if (group === undefined) groups.set(keyOf(value), [value])
    else group.push(value)
  }
  return groups
}
