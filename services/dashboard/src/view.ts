/** Values that the page derives from an overview: the one to show, its order, and the parts that need attention. */
import { SEVERITIES } from './alarms'
import { ago, bytes, fineShare, latency, megabits, NOT_KNOWN, span, timeOfDay, whole } from './format'
import type { Circuit, Fault, Feed, Hearing, Overview, OwnClock, Path, Site } from './overview'
import type { Throughput, Upstream } from './overview'
import type { HostReading } from './selfservice'
import { shared } from './sharing'
import { knobsOf } from './tuning'

/** Chooses between the overview on screen and one that arrived; an answer that was overtaken is dropped. */
export function newer(shown: Overview | null, arrived: Overview): Overview {
  if (shown === null) return arrived
  if (shown.hub.started_at !== arrived.hub.started_at) return arrived
  return Date.parse(arrived.now) >= Date.parse(shown.now) ? shared(shown, arrived) : shown
}

/** Faults, the worst first; equals stay as the hub orders them, which knows what follows from what. */
export function faultsInOrder(faults: Fault[]): Fault[] {
  const rank = (fault: Fault) => SEVERITIES.indexOf(fault.severity)
  return faults.toSorted((one, other) => rank(one) - rank(other))
}

/** Feeds by class, the most urgent first, then by name. */
export function feedsInOrder(feeds: Feed[]): Feed[] {
  return feeds.toSorted((one, other) => urgency(one) - urgency(other) || one.feed.localeCompare(other.feed))
}

/** Upstreams: those that are away first, then by name. */
export function upstreamsInOrder(upstreams: Upstream[]): Upstream[] {
  return upstreams.toSorted(
    (one, other) => Number(one.connected) - Number(other.connected) || one.upstream.localeCompare(other.upstream),
  )
}

/** Circuits: those that fail their feeds first, then those that stand, then those that wait, each by number. */
export function circuitsInOrder(circuits: Circuit[]): Circuit[] {
  const rank = (circuit: Circuit) => TONES.indexOf(toneOf(circuit.state))
  return circuits.toSorted((one, other) => rank(one) - rank(other) || one.circuit - other.circuit)
}

export type Tone = 'bad' | 'good' | 'quiet'

/** Whether a state of a circuit is what was hoped for, its opposite, or neither. */
export function toneOf(state: string): Tone {
  if (state === 'active') return 'good'
  return ['degraded', 'down', 'failed'].includes(state) ? 'bad' : 'quiet'
}

/** What was measured of the way to a site, a line each; what was not is left out. */
export function factsOf(path: Path): string[] {
  const facts = []
  if (path.rate_bps !== null) {
    const more = path.rate_is_lower_bound ? ' or more' : ''
    const control = path.congestion_control ? `, ${path.congestion_control}` : ''
    facts.push(`${megabits(path.rate_bps)} Mb/s${more}${control}`)
  }
  if (path.loss !== null) facts.push(`${fineShare(path.loss)} resent`)
  for (const one of path.circuits) {
    const measured = one.measured_bps === null ? '' : `, carries ${megabits(one.measured_bps)}`
    facts.push(`circuit ${one.circuit} ${one.state}: ${megabits(one.rate_bps)} Mb/s${measured}`)
  }
  const tuned = path.tcp_profile
  if (tuned !== null) facts.push(`TCP profile ${tuned.profile} (${tuned.state}): ${knobsOf(tuned.knobs)}`)
  return facts
}

export interface Labelled {
  text: string
  why: string
  tone: Tone
}

/** Whether a site receives multicast: the result of joining a group, and the time of the next test. */
export function hearingOf(hearing: Hearing, now: string): Labelled {
  if (hearing.state === 'not-allowed') return { text: 'multicast not allowed', why: hearing.reason, tone: 'quiet' }
  if (hearing.state === 'not-tried') return { text: 'multicast not tested yet', why: '', tone: 'quiet' }
  const joined = `joined ${ago(hearing.at, now)}`
  if (hearing.state === 'heard') return { text: 'receives multicast', why: joined, tone: 'good' }
  const text = hearing.state === 'too-slow' ? 'too slow for multicast' : 'receives no multicast'
  const again = hearing.again_at ? `next test at ${timeOfDay(hearing.again_at)}` : ''
  return { text, why: [hearing.reason, again].filter(Boolean).join(', '), tone: 'bad' }
}

/** A site's own word on its clock: its daemon, and the largest error. */
export function ownClockOf(clock: OwnClock): string {
  const by = clock.daemon ?? 'no daemon seen at the site'
  if (!clock.synchronised) return `not synchronised at the site (${by})`
  return `synchronised at the site (${by}), off by at most ${latency(clock.error_ms)}`
}

/** The load of a site's line when a group last lost packets on it, and the rate of the group: `4.00 of 40.0 Mb/s`. */
export function lineOf({ line }: HostReading): string {
  return line ? `${megabits(line.arrived_bps)} of ${megabits(line.offered_bps)} Mb/s` : NOT_KNOWN
}

/** The priority of the thread that reads a group: `real-time (20)`, `normal, as real-time 20 was refused`. */
export function priorityOf(reading: HostReading): string {
  const lost = reading.demotions > 0 ? `, lost ${whole(reading.demotions)} times` : ''
  if (reading.standing === 'real-time') return `real-time (${reading.priority})${lost}`
  if (reading.standing === 'refused') return `normal, as real-time ${reading.priority} was refused`
  return reading.standing === 'lost' ? `normal until it pauses${lost}` : 'normal'
}

/** The transports of a plan that are not there on the scheduler's host, each with the reason. */
export function notConsidered(figures: Record<string, unknown>): [string, string][] {
  return Object.entries(figures)
    .filter(([name]) => name.startsWith(NOT_CONSIDERED))
    .map(([name, reason]): [string, string] => [name.slice(NOT_CONSIDERED.length), String(reason)])
    .sort(([one], [other]) => one.localeCompare(other))
}

const NOT_CONSIDERED = 'not_considered_'

const TONES: Tone[] = ['bad', 'good', 'quiet']

/** What multicast saves: the share of the unicast-equivalent that did not have to be sent; negative if it cost more. */
export interface Saving {
  share: number | null
  bytes: number
}

export function saving(throughput: Throughput): Saving {
  const { egress_bytes, unicast_equivalent_bytes } = throughput
  const saved = unicast_equivalent_bytes - egress_bytes
  return { share: unicast_equivalent_bytes > 0 ? saved / unicast_equivalent_bytes : null, bytes: saved }
}

/** A word or two for what a site is doing. */
export type SiteState =
  'up to date' | 'catching up' | 'stands by' | 'away' | 'never enrolled' | 'never connected' | 'removed'

export function siteState(site: Site): SiteState {
  if (site.state !== 'connected') return WORDS[site.state]
  return (site.behind_products ?? 0) > BEHIND_PRODUCTS || (site.behind_s ?? 0) > BEHIND_SECONDS
    ? 'catching up'
    : 'up to date'
}

const WORDS: Record<Exclude<Site['state'], 'connected'>, SiteState> = {
  removed: 'removed',
  'never-enrolled': 'never enrolled',
  'never-connected': 'never connected',
  'stands-by': 'stands by',
  away: 'away',
}

/** What a site lacks: `nothing`, `4 300 products, 1.2 GB, the oldest 12 min old`; and what it has lost. */
export function behindOf(site: Site): string {
  if (site.behind_products === null) return NOT_KNOWN
  const counted = (count: number) => `${whole(count)} ${count === 1 ? 'product' : 'products'}`
  const least = site.behind_counting ? 'at least ' : ''
  const lacks = site.behind_products
    ? `${least}${counted(site.behind_products)}, ${bytes(site.behind_bytes)}, the oldest ${span(site.behind_s)} old`
    : 'nothing'
  return site.lost_products ? `${lacks}; lost ${counted(site.lost_products)}` : lacks
}

/** The feeds of a site by the transport that brings them; an empty name where nothing was sent yet. */
export function transportsOf(site: Site): [string, string[]][] {
  const groups = new Map<string, string[]>()
  for (const { feed, transport } of site.feeds) {
    groups.set(transport ?? '', [...(groups.get(transport ?? '') ?? []), feed])
  }
  return [...groups].toSorted(([one], [other]) => one.localeCompare(other))
}

/** What an operator does next on a hub that lacks something; empty when nothing is missing. */
export type Step = 'add-feed' | 'add-site' | 'subscribe' | 'connect' | 'put'

export function nextSteps(overview: Overview): Step[] {
  const steps: Step[] = []
  if (overview.feeds.length === 0) steps.push('add-feed')
  const sites = overview.sites.filter((site) => !site.relay)
  if (sites.length === 0) steps.push('add-site')
  if (overview.feeds.every((feed) => feed.fan_out === 0)) steps.push('subscribe')
  if (!sites.some((site) => site.connected || site.last_receipt !== null)) steps.push('connect')
  if (overview.feeds.every((feed) => feed.products === 0)) steps.push('put')
  return steps
}

function urgency(feed: Feed): number {
  const rank = CLASSES.indexOf(feed.class)
  return rank < 0 ? CLASSES.length : rank
}

const CLASSES = ['warning', 'observation', 'grid', 'bulk']
// A few products are always under way at a site that keeps up.
const BEHIND_PRODUCTS = 20
const BEHIND_SECONDS = 5
