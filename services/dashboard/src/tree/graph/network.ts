/** The graph of a hub's network, from the distribution tree, the present plans and what relays report. */
import type { Relay, Tree, TreeSite } from '../../api'
import type { Overview } from '../../overview'
import { Edges } from './edges'
import { waysOf } from './hops'
import { Legs, type Group } from './legs'
import { ratesOf } from './measuredrates'
import { byBadness, FOLDED_FROM, groupedBy, HUB, idOf, worstOf } from './model'
import type { NetEdge, NetNode, Network } from './model'
import { parentsOf } from './parents'
import { connectionState, hubState, linkState, type NodeState } from './nodestates'

export interface Sources {
  tree: Tree
  /** Null to readers of published figures. */
  overview: Overview | null
  /** By name, as far as they are known. */
  states: ReadonlyMap<string, NodeState>
  /** Null to readers who may not see them. */
  relays: readonly Relay[] | null
  /** Only this feed; null: all. */
  feed: string | null
}

export function networkOf(sources: Sources): Network {
  const legs = new Legs(sources.overview?.feeds ?? [])
  const edges = collected(sources, legs)
  const known = edges.all(sources.feed === null ? ratesOf(sources.relays ?? [], sources.overview) : () => null)
  const { parents, depths } = parentsOf(known)
  const nodes = nodesOf(sources, legs, known, depths)
  for (const node of nodes) node.parent = parents.get(node.id) ?? node.parent
  return grouped(nodes, known)
}

type Draft = { -readonly [Key in keyof NetNode]: NetNode[Key] }

function collected(sources: Sources, legs: Legs): Edges {
  const { tree, feed } = sources
  const edges = new Edges()
  for (const one of tree.upstreams.filter(({ feeds }) => feed === null || feeds.length === 0 || feeds.includes(feed))) {
    const feeds = one.feeds.filter((name) => feed === null || name === feed)
    edges.add(idOf('source', one.upstream), HUB, 'unicast', { feeds, isLive: one.connected })
  }
  for (const { source, upstreams } of sources.overview?.ldm_sources ?? []) {
    edges.add(idOf('ldm', source), HUB, 'ldm', { feeds: [], isLive: upstreams.some((one) => one.connected) })
  }
  const known = {
    ...{ legs, feed, sites: sources.overview?.sites ?? [] },
    fanOuts: new Map(sources.relays?.map((relay) => [relay.relay, relay.fan_out]) ?? []),
    circuitEnds: new Map(sources.overview?.circuits.map((one) => [one.circuit, one.sites]) ?? []),
  }
  for (const hop of waysOf(tree, known)) edges.add(hop.from, hop.to, hop.way, hop)
  if (feed === null) linkRelays(tree, edges)
  return edges
}

/** A relay that serves no site now is still one of the hub's. */
function linkRelays(tree: Tree, edges: Edges): void {
  for (const { relay, connected } of tree.relays) {
    const id = idOf('relay', relay)
    if (!edges.has(id)) edges.add(HUB, id, 'not-sent', { feeds: [], isLive: connected })
  }
}

function nodesOf(
  sources: Sources,
  legs: Legs,
  edges: readonly NetEdge[],
  depths: ReadonlyMap<string, number>,
): Draft[] {
  const { tree, overview, states } = sources
  const used = new Set([HUB, ...edges.flatMap(({ from, to }) => [from, to])])
  const last = Math.max(1, ...[...used].filter((id) => !id.startsWith('site~')).map((id) => depths.get(id) ?? 1)) + 1
  const feedsOf = feedsByTarget(edges)
  const node = (id: string, kind: NetNode['kind'], name: string, state: NodeState | null, detail: string): Draft => ({
    ...{ id, kind, name, detail, mark: state?.mark ?? null, words: state?.words ?? '' },
    ...{ feeds: feedsOf.get(id) ?? [], parent: null, layer: kind === 'site' ? last : (depths.get(id) ?? 0) },
  })
  const relayState = (name: string, isConnected: boolean) => states.get(name) ?? linkState(isConnected)
  return [
    ...tree.upstreams.map((one) =>
      node(idOf('source', one.upstream), 'source', one.upstream, linkState(one.connected), 'upstream hub'),
    ),
    ...(overview?.ldm_sources ?? []).map(({ source, feeds, upstreams }) => {
      const isConnected = upstreams.some((one) => one.connected)
      return node(idOf('ldm', source), 'source', source, linkState(isConnected), `LDM, ${feeds}`)
    }),
    node(HUB, 'hub', tree.hub, hubState(overview), 'this hub'),
    ...tree.relays.map(({ relay, connected, sites }) =>
      node(idOf('relay', relay), 'relay', relay, relayState(relay, connected), `relay${behind(sites)}`),
    ),
    ...legs.groups.map((group) => node(group.id, 'group', group.name, null, detailOf(group))),
    ...tree.sites.map((site) =>
      node(idOf('site', site.site), 'site', site.site, siteState(site, states), site.organisation),
    ),
  ].filter(({ id }) => used.has(id))
}

function siteState(site: TreeSite, states: ReadonlyMap<string, NodeState>): NodeState {
  return states.get(site.site) ?? connectionState(site)
}

function detailOf({ feeds }: Group): string {
  return feeds.length <= NAMED ? feeds.join(', ') : `${feeds.length} feeds`
}

/** The sites that the relay is for, whether it serves them now or not. */
function behind(sites: readonly string[]): string {
  if (sites.length === 0) return ''
  return ` for ${sites.length <= NAMED ? sites.join(', ') : `${sites.length} sites`}`
}

function feedsByTarget(edges: readonly NetEdge[]): Map<string, string[]> {
  const found = groupedBy(edges, ({ to }) => to)
  return new Map([...found].map(([id, all]) => [id, distinct(all.flatMap(({ feeds }) => feeds))]))
}

/** Sorts the nodes below their parents. Many sites that get everything from the hub itself become a group too. */
function grouped(nodes: readonly Draft[], edges: readonly NetEdge[]): Network {
  const direct = nodes.filter((node) => node.kind === 'site' && node.parent === HUB)
  const isFolded = direct.length >= FOLDED_FROM
  if (isFolded) for (const node of direct) node.parent = DIRECT
  const all = isFolded ? [...nodes, directNode(direct)] : nodes
  const children = groupedBy(all.filter(hasParent), (node) => node.parent)
  for (const below of children.values()) below.sort(inTree)
  return {
    nodes: new Map(all.map((node) => [node.id, named(node, children)])),
    edges: isFolded ? throughDirect(edges, new Set(direct.map(({ id }) => id))) : edges,
    children,
  }
}

function hasParent(node: Draft): node is Draft & { parent: string } {
  return node.parent !== null
}

/** A group, and the sites without one, are as well as the worst site below them. */
function named(node: Draft, children: ReadonlyMap<string, readonly Draft[]>): NetNode {
  if (node.kind !== 'group' && node.kind !== 'direct') return node
  node.mark = worstOf(children.get(node.id)?.map(({ mark }) => mark) ?? [])
  return node
}

function directNode(sites: readonly Draft[]): Draft {
  return {
    ...{ id: DIRECT, kind: 'direct', name: 'Direct sites', mark: null, words: '', detail: 'without relay or group' },
    ...{ feeds: distinct(sites.flatMap(({ feeds }) => feeds)), parent: HUB, layer: 2 },
  }
}

function throughDirect(edges: readonly NetEdge[], direct: ReadonlySet<string>): NetEdge[] {
  const hops = new Edges()
  const rest: NetEdge[] = []
  for (const edge of edges) {
    if (edge.from !== HUB || !direct.has(edge.to)) {
      rest.push(edge)
      continue
    }
    hops.add(HUB, DIRECT, edge.way, edge)
    rest.push({ ...edge, from: DIRECT })
  }
  return [...hops.all(() => null), ...rest]
}

/** Relays and groups first, then sites; among each the worst first. */
function inTree(one: Draft, other: Draft): number {
  return Number(one.kind === 'site') - Number(other.kind === 'site') || byBadness(one, other)
}

function distinct(feeds: readonly string[]): string[] {
  return [...new Set(feeds)].toSorted()
}

const DIRECT = 'direct'
/** More names than these are only counted. */
const NAMED = 3
