/** Networks for the tests: a small one with everything, and one of any size. */
import type { Relay, Transport, Tree, TreeSite } from '../../api'
import type { Overview } from '../../overview'
import type { Sources } from './network'

export function siteOf(site: string, more: Partial<TreeSite> = {}): TreeSite {
  return { site, organisation: '', connected: true, via: [], circuit: null, feeds: [takes('NGRID')], ...more }
}

export function takes(feed: string, transport: Transport | null = 'unicast', relay: string | null = null) {
  return { feed, transport, relay }
}

/** A plan's leg, as far as the tree asks for it. */
export function legOf(leg: number, transport: Transport, site_names: string[], more: object = {}) {
  return { leg, transport, site_names, circuits: [], ...more }
}

export function feedOf(feed: string, ...legs: object[]) {
  return { feed, plan: { legs } }
}

/** An overview with these parts and nothing else. */
export function overviewOf(parts: object): Overview {
  const empty = { feeds: [], sites: [], circuits: [], upstreams: [], ldm_sources: [], throughput: { out_bps: 0 } }
  const hub = { node: { running: true, restarts: 0 } }
  return { now: '2026-03-14T15:09:26Z', hub, ...empty, ...parts } as unknown as Overview
}

export function sourcesOf(tree: Partial<Tree>, more: Partial<Sources> = {}): Sources {
  const whole: Tree = { hub: 'hub', upstreams: [], relays: [], sites: [], ...tree }
  return { tree: whole, overview: null, states: new Map(), relays: null, feed: null, ...more }
}

/** A relay's report of one tunnel. */
export function tunnelTo(relay: string, site: string, rate_from_hub_bps: number, ended = false): Relay {
  return { relay, fan_out: null, tunnels: [{ site, rate_from_hub_bps, ended }] } as unknown as Relay
}

/** As many sites as wanted, each with all feeds: half of them in groups of 25, the others straight from the hub. */
export function large(sites: number, feeds: number): Sources {
  const names = Array.from({ length: sites }, (_, at) => `site${at}.edu`)
  const feedNames = Array.from({ length: feeds }, (_, at) => `FEED${at}`)
  const inGroups = names.slice(0, sites / 2)
  const taken = (transport: Transport) => feedNames.map((feed) => takes(feed, transport))
  return sourcesOf(
    { sites: names.map((name, at) => siteOf(name, { feeds: taken(at < sites / 2 ? 'multicast' : 'unicast') })) },
    { overview: overviewOf({ feeds: feedNames.map((feed, at) => feedOf(feed, ...groupLegs(inGroups, at))) }) },
  )
}

function groupLegs(names: readonly string[], feed: number): object[] {
  const count = Math.ceil(names.length / GROUP)
  return Array.from({ length: count }, (_, at) =>
    legOf(at, 'multicast', names.slice(at * GROUP, (at + 1) * GROUP), { group: `239.${feed}.0.${at}`, port: 5000 }),
  )
}

const GROUP = 25
