/** The way of each feed to each site, hop by hop: over relays on the site's way, or a relay or group of a leg. */
import type { FanOut, Tree, TreeFeed, TreeSite } from '../../api'
import type { Leg, Site, SiteFeed } from '../../overview'
import type { Carried } from './edges'
import type { Legs } from './legs'
import { HUB, idOf, type Way } from './model'

export interface Hop extends Carried {
  from: string
  to: string
  way: Way
}

export interface Known {
  legs: Legs
  sites: readonly Site[]
  /** By relay; empty if the reader may not see it. */
  fanOuts: ReadonlyMap<string, FanOut | null>
  /** By circuit, the sites or relays at its ends. */
  circuitEnds: ReadonlyMap<number, readonly string[]>
  feed: string | null
}

export function waysOf(tree: Tree, known: Known): Hop[] {
  const live = new Map(known.sites.map(({ site, feeds }) => [site, feeds]))
  const relays = new Set(tree.relays.map(({ relay }) => relay))
  return tree.sites.flatMap((site) => {
    const wanted = site.feeds.filter(({ feed }) => known.feed === null || feed === known.feed)
    if (wanted.length === 0 && known.feed !== null) return []
    const via = site.via.filter((relay) => relays.has(relay))
    if (wanted.length === 0) return unsubscribed(site, via)
    const now = new Map(live.get(site.site)?.map((one) => [one.feed, one]))
    return coursesOf(site, wanted, { relays, known, now }).flatMap((one) => hopsOf(site, via, one, known))
  })
}

/** The way of feeds to a site, apart from relays that carry all that it gets by connections. */
interface Course {
  way: Way
  /** The relay that fans the feeds out. */
  relay: string | null
  /** The node of the group. */
  group: string | null
  leg: Leg | null
  feeds: string[]
  isLive: boolean
}

interface Context {
  relays: ReadonlySet<string>
  known: Known
  now: ReadonlyMap<string, SiteFeed>
}

/** Thirty feeds of a site have few different ways, which are drawn once each. */
function coursesOf(site: TreeSite, wanted: readonly TreeFeed[], { relays, known, now }: Context): Course[] {
  const courses = new Map<string, Course>()
  for (const { feed, transport, relay: offered } of wanted) {
    const leg = known.legs.legOf(feed, site.site, now.get(feed) ?? null)
    const planned: Way = transport ?? leg?.transport ?? 'not-sent'
    const relay = planned === 'multicast' && offered !== null && relays.has(offered) ? offered : null
    const way = relay !== null && known.fanOuts.get(relay) === 'unicast' ? 'unicast' : planned
    const group = way === 'multicast' && leg !== null ? (known.legs.groupOf(feed, leg)?.id ?? null) : null
    const isLive = site.connected && transport !== null
    const key = `${way} ${relay} ${group} ${isLive} ${numbersOf(leg, site.site)}`
    const same = courses.get(key)
    if (same === undefined) courses.set(key, { way, relay, group, leg, feeds: [feed], isLive })
    else same.feeds.push(feed)
  }
  return [...courses.values()]
}

function hopsOf(site: TreeSite, via: readonly string[], course: Course, known: Known): Hop[] {
  const { way, relay, group, leg, feeds, isLive } = course
  const onWay = way === 'multicast' ? [] : via.toReversed()
  const relays = (relay === null ? onWay : [relay]).map((name) => idOf('relay', name))
  const stops = [HUB, ...relays, ...(group === null ? [] : [group]), idOf('site', site.site)]
  return stops.slice(1).map((to, at) => {
    const from = stops[at] ?? HUB
    const ordered = orderedOn([from, to], site, known)
    if (ordered.length > 0) return { from, to, way: 'dynamic-circuit', feeds, isLive, circuits: ordered }
    // One copy goes to a relay that fans out, whatever it makes of it.
    const circuits = at === 0 && leg?.transport === way ? numbersOf(leg, site.site) : NONE
    return { from, to, way: relay !== null && at === 0 ? 'unicast' : way, feeds, isLive, circuits }
  })
}

/** The circuits on which the plan has the feed; they begin at the hub. */
function numbersOf(leg: Leg | null, site: string): readonly number[] {
  if (leg === null || leg.circuits.length === 0) return NONE
  return leg.circuits.filter((one) => one.site === site).map(({ circuit }) => circuit)
}

function orderedOn(ids: readonly string[], site: TreeSite, known: Known): readonly number[] {
  return site.circuit !== null && isBetween(ids, site, known) ? [site.circuit] : NONE
}

/** Whether the ordered circuit of a site's way lies between these two nodes. */
function isBetween(ids: readonly string[], { circuit, via }: TreeSite, { circuitEnds }: Known): boolean {
  if (circuit === null || !ids.every((id) => id.startsWith('relay~'))) return false
  const ends = (circuitEnds.get(circuit) ?? []).map((name) => idOf('relay', name))
  return ends.length === 0 ? via.length === 2 : ids.every((id) => ends.includes(id))
}

function unsubscribed(site: TreeSite, via: readonly string[]): Hop[] {
  const stops = [HUB, ...via.map((name) => idOf('relay', name)).toReversed(), idOf('site', site.site)]
  return stops.slice(1).map((to, at) => ({
    ...{ from: stops[at] ?? HUB, to, feeds: [], isLive: false },
    way: 'not-sent',
  }))
}

const NONE: readonly number[] = []
