/** Nodes and edges in words: for screen readers, the list and the card of the selected node. */
import { megabits, whole } from '../format'
import type { Count, ShownNode } from './folding'
import type { NetEdge, NetNode, NodeKind, Way } from './graph/model'

export const WAY_WORDS: Record<Way, string> = {
  unicast: 'unicast',
  multicast: 'multicast',
  'static-circuit': 'static circuit',
  'dynamic-circuit': 'dynamic circuit',
  ldm: 'LDM',
  'not-sent': 'not sent yet',
}

/** The label of an edge: `unicast, 960 Mb/s`, `circuit 7`, `multicast, planned`. */
export function labelOf(edge: NetEdge): string {
  const way = wayOf(edge)
  if (edge.way === 'not-sent') return way
  if (!edge.isLive) return `${way}, ${edge.to === 'hub' ? 'no link' : 'planned'}`
  return edge.rate_bps === null ? way : `${way}, ${megabits(edge.rate_bps)} Mb/s`
}

/** An edge from the side of the node to which it leads: `NGRID by unicast from hub, 960 Mb/s`. */
export function arrivalOf(edge: NetEdge, nameOf: (id: string) => string): string {
  const feeds = edge.feeds.length > 0 ? `${feedsText(edge.feeds)} by ` : ''
  const label = labelOf(edge)
  if (edge.way === 'not-sent') return edge.feeds.length > 0 ? `${feedsText(edge.feeds)}: ${label}` : label
  const [way = '', ...more] = label.split(', ')
  return [`${feeds}${way} from ${nameOf(edge.from)}`, ...more].join(', ')
}

/** All facts of a node in one line, for those who do not see the drawing. */
export function sentenceOf(
  { node, counts }: ShownNode,
  arrivals: readonly NetEdge[],
  nameOf: (id: string) => string,
): string {
  const below = counts.length > 0 ? countsText(counts) : ''
  const parts = [node.name, node.words, node.detail, KIND_WORDS[node.kind], below]
  return [parts.filter(Boolean).join(', '), ...arrivals.map((edge) => arrivalOf(edge, nameOf))].join('; ')
}

/** `2 sites: 1 down, 1 within the objectives`. */
export function countsText(counts: readonly Count[]): string {
  const all = counts.reduce((sum, { sites }) => sum + sites, 0)
  return `${sitesText(all)}: ${counts.map(countWords).join(', ')}`
}

export function countWords({ mark, sites }: Count): string {
  return `${whole(sites)} ${COUNT_WORDS[mark]}`
}

export function sitesText(count: number): string {
  return `${whole(count)} ${count === 1 ? 'site' : 'sites'}`
}

/** A few names, or their number: `NGRID, WARN`, `12 feeds`. */
export function feedsText(feeds: readonly string[]): string {
  return feeds.length <= FEEDS_NAMED ? feeds.join(', ') : `${feeds.length} feeds`
}

/** The line below a node's name; of sites and relays without the detail, for which there is no room. */
export function nodeLine(node: NetNode): string {
  if (node.kind === 'site') return node.words
  const parts = node.kind === 'relay' ? ['relay', node.words] : [node.words, node.detail]
  return parts.filter(Boolean).join(', ')
}

/** Sites are the rule and have no word; hubs and relays name themselves. */
const KIND_WORDS: Record<NodeKind, string> = {
  source: '',
  hub: '',
  relay: '',
  group: 'multicast group',
  direct: '',
  site: '',
}

const COUNT_WORDS: Record<Count['mark'], string> = {
  critical: 'down',
  warning: 'late',
  'catching-up': 'catching up',
  unknown: 'not measured',
  info: 'for information',
  never: 'never connected',
  within: 'within the objectives',
}

function wayOf({ way, circuits, feeds, to }: NetEdge): string {
  if (way === 'not-sent' && feeds.length === 0) return to.startsWith('relay~') ? 'no site now' : 'no subscriptions'
  if (circuits.length === 0) return WAY_WORDS[way]
  const numbers = circuits.length === 1 ? `circuit ${circuits[0]}` : `${circuits.length} circuits`
  return way === 'multicast' || way === 'unicast' ? `${way} on ${numbers}` : numbers
}

const FEEDS_NAMED = 3
