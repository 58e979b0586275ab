/** The status of the hub in one sentence, with the figures behind it. It never says "within" of what isn't measured. */
import type { Overview, Feed, Site } from '../overview'
import { meetsObjective, siteState } from '../view'
import { incidentsOf, lasting, many, type Incident } from './incidents'

export interface Status {
  sentence: string
  /** How many sites and feeds are in order. */
  detail: string
  /** Incidents that are not silenced. */
  counts: Counts
}

export interface Counts {
  critical: number
  warning: number
  information: number
}

export function statusOf(overview: Overview, incidents: Incident[] = incidentsOf(overview)): Status {
  const loud = incidents.filter((one) => one.fault.silence === null)
  const counts = countsOf(loud)
  const serious = loud.filter((one) => one.fault.severity !== 'information')
  const figures = figuresOf(overview)
  const sentence = serious.length > 0 ? wrong(serious, overview.now) : calm(figures)
  return { sentence, detail: detailOf(figures), counts }
}

interface Figures {
  feeds: number
  sites: number
  /** Connected and up to date, or served by another hub. */
  inOrder: number
  /** Feeds with subscribers: within the objective, above it, not measured. */
  within: number
  late: string[]
  unmeasured: number
}

function figuresOf({ sites, feeds }: Overview): Figures {
  const receiving = sites.filter((site) => !site.relay && site.state !== 'removed')
  const sent = feeds.filter((feed) => feed.fan_out > 0)
  const met = sent.map(isMet)
  return {
    feeds: feeds.length,
    sites: receiving.length,
    inOrder: receiving.filter(isInOrder).length,
    within: met.filter((one) => one === true).length,
    late: sent.filter((_, at) => met[at] === false).map((feed) => feed.feed),
    unmeasured: met.filter((one) => one === null).length,
  }
}

function isInOrder(site: Site): boolean {
  return ['up to date', 'stands by'].includes(siteState(site))
}

function isMet(feed: Feed): boolean | null {
  return meetsObjective(feed.latency.distribution_ms, feed.objective_ms)
}

function countsOf(loud: Incident[]): Counts {
  const count = (severity: string) => loud.filter((one) => one.fault.severity === severity).length
  return { critical: count('critical'), warning: count('warning'), information: count('information') }
}

function wrong(serious: Incident[], now: string): string {
  const named = serious.slice(0, NAMED).map((one) => lasting(one, now))
  const others = serious.length - named.length
  return [...named, ...(others > 0 ? [`${others} more`] : [])].join('; ')
}

function calm({ feeds, sites, inOrder, within, late, unmeasured }: Figures): string {
  if (feeds === 0) return 'No feed is set up yet'
  if (sites === 0) return 'No site receives feeds yet'
  if (inOrder < sites) return `${inOrder} of ${many(sites, 'site')} ${inOrder === 1 ? 'is' : 'are'} up to date`
  if (late.length === 1) return `${late[0]} is late`
  if (late.length > 1) return `${late.length} feeds are late`
  if (within + unmeasured === 0) return 'No site subscribes to a feed yet'
  if (within === 0) return `${all(sites)} up to date; latency is not measured yet`
  if (unmeasured > 0) return `${all(sites)} up to date; ${many(unmeasured, 'feed')} not measured yet`
  return sites === 1
    ? 'The site receives its feeds within the objectives'
    : `All ${sites} sites receive their feeds within the objectives`
}

function all(sites: number): string {
  return sites === 1 ? 'The site is' : `All ${sites} sites are`
}

function detailOf({ feeds, sites, inOrder, within, late, unmeasured }: Figures): string {
  if (feeds === 0 || sites === 0) return ''
  const upToDate = `${inOrder} of ${many(sites, 'site')} up to date`
  const sent = within + late.length + unmeasured
  const withinOf = sent > 0 ? `; ${within} of ${many(sent, 'feed')} within the objectives` : ''
  const unknown = unmeasured > 0 ? `, ${unmeasured} not measured yet` : ''
  return `${upToDate}${withinOf}${unknown}.`
}

// More would not fit one line.
const NAMED = 2
