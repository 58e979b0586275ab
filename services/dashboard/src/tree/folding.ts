/** The part of the network that is on screen: folded parents stand for the sites below them. */
import type { MarkedState } from '../ui/marks/states'
import { FOLDED_FROM, WORST_FIRST, type NetEdge, type NetNode, type Network } from './graph/model'

/** By parent, the number of sites to show below it; 0: folded. Parents that are left out are as they begin. */
export type Opened = ReadonlyMap<string, number>

export interface ShownNode {
  node: NetNode
  /** Null: nothing can be folded. */
  isOpen: boolean | null
  /** Sites below it by state, the worst state first; of a site none. */
  counts: readonly Count[]
}

export interface Count {
  mark: MarkedState
  sites: number
}

/** Sites of an open parent that are not on screen yet. */
export interface More {
  id: string
  parent: string
  sites: number
}

export interface Shown {
  /** In the order of the tree: parents before the nodes below them. */
  items: readonly ShownNode[]
  mores: readonly More[]
  edges: readonly NetEdge[]
}

export function shownOf(network: Network, opened: Opened, selected: string | null): Shown {
  const view = new View(network, opened, selected)
  for (const node of network.nodes.values()) if (node.parent === null) view.put(node)
  return { items: view.items, mores: view.mores, edges: visible(network, view.ids) }
}

/** The next state of folding when more of a parent is wanted, or less. */
export function opened(network: Network, now: Opened, id: string, isOpen: boolean): Opened {
  const shown = now.get(id) ?? beginning(network, id)
  return new Map([...now, [id, isOpen ? shown + STEP : 0]])
}

/** Parents of sites can be folded; hub and sources cannot. */
export function isFoldable(network: Network, node: NetNode): boolean {
  return FOLDABLE.includes(node.kind) && (network.children.get(node.id)?.length ?? 0) > 0
}

/** All sites below a node. */
export function sitesBelow(network: Network, id: string): NetNode[] {
  const below = network.children.get(id) ?? []
  return below.flatMap((node) => (node.kind === 'site' ? [node] : sitesBelow(network, node.id)))
}

export function countsOf(sites: readonly NetNode[]): Count[] {
  const counts = new Map<MarkedState, number>()
  for (const { mark } of sites) if (mark !== null) counts.set(mark, (counts.get(mark) ?? 0) + 1)
  return WORST_FIRST.flatMap((mark) => {
    const count = counts.get(mark)
    return count === undefined ? [] : [{ mark, sites: count }]
  })
}

class View {
  readonly items: ShownNode[] = []
  readonly mores: More[] = []
  readonly ids = new Set<string>()
  private readonly kept: ReadonlySet<string>

  constructor(
    private readonly network: Network,
    private readonly opened: Opened,
    selected: string | null,
  ) {
    this.kept = wayTo(network, selected)
  }

  put(node: NetNode): void {
    const canFold = isFoldable(this.network, node)
    const limit = canFold ? (this.opened.get(node.id) ?? beginning(this.network, node.id)) : ALL
    const isOpen = canFold ? limit > 0 : null
    this.ids.add(node.id)
    this.items.push({ node, isOpen, counts: node.kind === 'site' ? [] : countsOf(sitesBelow(this.network, node.id)) })
    this.putBelow(node, limit)
  }

  /** The selected node is on screen even below a folded parent. */
  private putBelow(node: NetNode, limit: number): void {
    let sites = 0
    let left = 0
    for (const below of this.network.children.get(node.id) ?? []) {
      if (below.kind === 'site') sites += 1
      const isShown = below.kind === 'site' ? sites <= limit : limit > 0
      if (isShown || this.kept.has(below.id)) this.put(below)
      else left += below.kind === 'site' ? 1 : 0
    }
    if (limit > 0 && left > 0) this.mores.push({ id: `more~${node.id}`, parent: node.id, sites: left })
  }
}

function wayTo(network: Network, selected: string | null): Set<string> {
  const way = new Set<string>()
  for (let id = selected; id !== null && !way.has(id); id = network.nodes.get(id)?.parent ?? null) way.add(id)
  return way
}

/** Many sites of one parent begin folded; in a network of many more, those of every parent do. */
function beginning(network: Network, id: string): number {
  const sites = (network.children.get(id) ?? []).filter(({ kind }) => kind === 'site').length
  const isLarge = network.nodes.size >= ALL_FOLDED_FROM
  return sites >= FOLDED_FROM || (isLarge && sites > 0) ? 0 : STEP
}

/** Edges between nodes on screen; those of hidden nodes end at the nearest parent that is there. */
function visible(network: Network, ids: ReadonlySet<string>): NetEdge[] {
  const merged = new Map<string, NetEdge>()
  for (const edge of network.edges) {
    const from = standIn(network, ids, edge.from)
    const to = standIn(network, ids, edge.to)
    if (from === null || to === null || from === to) continue
    const key = `${from} ${to} ${edge.way}`
    const other = merged.get(key)
    merged.set(key, other === undefined ? { ...edge, from, to } : joined(other, edge))
  }
  return [...merged.values()]
}

function standIn(network: Network, ids: ReadonlySet<string>, id: string): string | null {
  for (let at: string | null = id; at !== null; at = network.nodes.get(at)?.parent ?? null) if (ids.has(at)) return at
  return null
}

function joined(one: NetEdge, other: NetEdge): NetEdge {
  return {
    ...one,
    feeds: union(one.feeds, other.feeds),
    circuits: union(one.circuits, other.circuits),
    rate_bps: sumOf(one.rate_bps, other.rate_bps),
    isLive: one.isLive || other.isLive,
  }
}

/** Most edges that are joined carry the same feeds. */
function union<Value>(ones: readonly Value[], others: readonly Value[]): readonly Value[] {
  const added = others.filter((value) => !ones.includes(value))
  return added.length === 0 ? ones : [...ones, ...added]
}

/** A sum with an unknown part is not known. */
function sumOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

const FOLDABLE: readonly NetNode['kind'][] = ['relay', 'group', 'direct']
/** The number of nodes of a network. */
const ALL_FOLDED_FROM = 120
/** Sites that an open parent shows, and that each press on the rest adds. */
export const STEP = 30
const ALL = Number.MAX_SAFE_INTEGER
