/** Incidents in words: title, cause, affected sites and feeds, and the pages of the next step. */
import { bytes, latency, span, whole } from '../format'
import type { Fault, Feed, Overview, Site } from '../overview'
import { addressOf } from '../route'
import { faultsInOrder, siteState } from '../view'

export interface Incident {
  fault: Fault
  /** A clause without a period: `psu.edu is down`. */
  title: string
  /** The hub's sentence; empty if the title says all of it. */
  cause: string
  affected: Affected
  steps: Step[]
}

export interface Affected {
  /** `1 site, 9 feeds`; empty where neither a site nor a feed is. */
  count: string
  detail: string
}

/** A button of the next step: a page of this hub. */
export interface Step {
  title: string
  address: string
}

/** The incidents of an overview, the worst first, those of equal severity in the hub's order: causes come first. */
export function incidentsOf(overview: Overview): Incident[] {
  const feeds = new Map(overview.feeds.map((one) => [one.feed, one]))
  const sites = new Map(overview.sites.map((one) => [one.site, one]))
  const troubled = new Map<string, Set<string>>()
  for (const { feed, site } of overview.faults) {
    if (feed !== null && site !== null) troubled.set(site, (troubled.get(site) ?? new Set()).add(feed))
  }
  return faultsInOrder(overview.faults).map((fault) => {
    const site = fault.site === null ? undefined : sites.get(fault.site)
    const feed = fault.feed === null ? undefined : feeds.get(fault.feed)
    const title = titleOf(fault, site)
    return {
      fault,
      title: title ?? withoutPeriod(fault.sentence),
      cause: title === null ? '' : fault.sentence,
      affected: affectedBy(fault, feed, site, troubled),
      steps: stepsOf(fault, feed, site),
    }
  })
}

/** The title with its duration: `psu.edu has been down for 6 min`. */
export function lasting(incident: Incident, now: string): string {
  const { fault, title } = incident
  if (!title.endsWith(' is down')) return title
  const seconds = (Date.parse(now) - Date.parse(fault.at)) / 1000
  return Number.isNaN(seconds) ? title : `${fault.site} has been down for ${span(seconds)}`
}

function titleOf(fault: Fault, site: Site | undefined): string | null {
  if (fault.kind === 'site-down' && fault.site !== null) {
    const state = site && siteState(site)
    if (state === 'never enrolled' || state === 'never connected') return `${fault.site} has ${state}`
    return `${fault.site} is down`
  }
  if (fault.kind === 'objective' && fault.feed !== null) {
    return `${fault.feed} is late${fault.site === null ? '' : ` at ${fault.site}`}`
  }
  return null
}

function affectedBy(
  { feed: name, site: place }: Fault,
  feed: Feed | undefined,
  site: Site | undefined,
  troubled: Map<string, Set<string>>,
): Affected {
  if (place !== null && name !== null) {
    const others = (site?.feeds.length ?? 1) - (troubled.get(place)?.size ?? 1)
    return { count: '1 site, 1 feed', detail: others > 0 ? `${many(others, 'other feed')} without an incident.` : '' }
  }
  if (place !== null) {
    const feeds = site ? `, ${many(site.feeds.length, 'feed')}` : ''
    return { count: `1 site${feeds}`, detail: site ? backlogOf(site) : '' }
  }
  if (name === null) return { count: '', detail: '' }
  const measured = feed?.latency.distribution_ms?.p99 ?? null
  const objective = latency(feed?.objective_ms)
  const detail = measured === null ? '' : `p99 is ${latency(measured)}, the objective ${objective}.`
  return { count: feed ? `${many(feed.fan_out, 'site')}, 1 feed` : '1 feed', detail }
}

function backlogOf(site: Site): string {
  if (site.behind_products === null) return 'Its backlog is not known yet.'
  if (site.behind_products === 0) return 'No product waits for it.'
  const verb = site.behind_products === 1 ? 'waits' : 'wait'
  const least = site.behind_counting ? 'At least ' : ''
  const lost = site.lost_products ? ` ${many(site.lost_products, 'product')} left the log before it came back.` : ''
  return `${least}${many(site.behind_products, 'product')} (${bytes(site.behind_bytes)}) ${verb} here.${lost}`
}

function stepsOf({ kind, feed, site }: Fault, knownFeed: Feed | undefined, knownSite: Site | undefined): Step[] {
  const steps: Step[] = []
  if (kind === 'objective' && feed !== null) {
    steps.push({ title: 'Open the latency', address: addressOf('latency', null, { site, feed }) })
  }
  if (knownSite) steps.push({ title: `Open ${knownSite.site}`, address: addressOf('sites', knownSite.site) })
  if (knownFeed) steps.push({ title: `Open ${knownFeed.feed}`, address: addressOf('feeds', knownFeed.feed) })
  return steps.slice(0, MOST_STEPS)
}

/** A count with its noun: `1 site`, `12 sites`. */
export function many(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`
}

function withoutPeriod(sentence: string): string {
  return sentence.replace(/\.$/, '')
}

const MOST_STEPS = 2
