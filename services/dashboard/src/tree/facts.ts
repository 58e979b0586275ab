/** The card of the selected node: its facts and the pages that have more. */
import { ago, fineShare, latency, megabits } from '../format'
import type { Overview } from '../overview'
import { addressOf } from '../route'
import { behindOf } from '../view'
import { countsOf, sitesBelow } from './folding'
import { Legs } from './graph/legs'
import { idOf, type NetNode, type Network } from './graph/model'
import { countsText, feedsText } from './nodewords'

export type Fact = [label: string, text: string]

export interface PageLink {
  text: string
  href: string
}

/** Facts that the hub knows of; those that are not measured say so by a dash. */
export function factsOf(node: NetNode, network: Network, overview: Overview | null): Fact[] {
  const below = node.kind === 'site' ? [] : sitesBelow(network, node.id)
  const facts: Fact[] = []
  if (below.length > 0) facts.push(['Below it', countsText(countsOf(below))])
  if (node.feeds.length > 0) facts.push(['Feeds', feedsText(node.feeds)])
  if (overview === null) return facts
  return [...facts, ...ownFacts(node, overview)]
}

function ownFacts(node: NetNode, overview: Overview): Fact[] {
  if (node.kind === 'group') return paceOf(node, overview)
  if (node.kind === 'hub') return [['Sends now', `${megabits(overview.throughput.out_bps)} Mb/s`]]
  if (node.kind === 'source') return upstreamFacts(node, overview)
  const seen = overview.sites.find(({ site }) => site === node.name)
  if ((node.kind !== 'site' && node.kind !== 'relay') || seen === undefined) return []
  const path: Fact[] = [
    ['Round trip', latency(seen.round_trip_ms)],
    ['Loss on the path', fineShare(seen.path.loss)],
  ]
  if (node.kind === 'relay') return path
  const receipt: Fact = ['Last receipt', ago(seen.last_receipt, overview.now)]
  return [...path, ['Behind by', behindOf(seen)], receipt]
}

function upstreamFacts({ id }: NetNode, { upstreams, now }: Overview): Fact[] {
  const found = upstreams.find((one) => idOf('source', one.upstream) === id)
  if (found === undefined) return []
  const facts: Fact[] = [['Since', ago(found.since, now)]]
  return found.reason ? [...facts, ['Reason', found.reason]] : facts
}

function paceOf(node: NetNode, { feeds }: Overview): Fact[] {
  const pace_bps = new Legs(feeds).groups.find(({ id }) => id === node.id)?.pace_bps ?? null
  return pace_bps === null ? [] : [['Pace in the plan', `${megabits(pace_bps)} Mb/s`]]
}

/** Pages that the reader may open. */
export function linksOf(node: NetNode, scopes: readonly string[]): PageLink[] {
  return everyLink(node)
    .filter(({ scope }) => scopes.includes(scope))
    .map(({ text, href }) => ({ text, href }))
}

function everyLink(node: NetNode): (PageLink & { scope: string })[] {
  const [only] = node.feeds
  switch (node.kind) {
    case 'site':
      return [
        { text: 'Open the site', href: addressOf('sites', node.name), scope: 'read' },
        { text: 'Show latency', href: addressOf('latency', null, { site: node.name }), scope: 'latency' },
      ]
    case 'relay':
      return [{ text: 'Open Relays', href: addressOf('relays'), scope: 'details' }]
    case 'group':
      return only === undefined ? [] : [{ text: `Open ${only}`, href: addressOf('feeds', only), scope: 'read' }]
    case 'direct':
      return [{ text: 'Open Sites', href: addressOf('sites'), scope: 'read' }]
    default:
      return [{ text: 'Open Feeds', href: addressOf('feeds'), scope: 'read' }]
  }
}
