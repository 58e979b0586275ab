/** Incidents of the hub, which words them: their buttons, and counts with nouns. */
import type { Incident, IncidentAction } from '../api'
import { whole } from '../format'
import { addressOf } from '../route'

/** A button of the next step: a page of this hub. */
export interface Step {
  title: string
  address: string
}

/** The pages of an incident's actions, each once. */
export function stepsOf(actions: readonly IncidentAction[]): Step[] {
  const steps = actions.flatMap((action) => stepOf(action) ?? [])
  return steps.filter((step, at) => steps.findIndex((one) => one.address === step.address) === at).slice(0, MOST_STEPS)
}

/** What an incident affects: `1 site, 9 feeds`; empty where it is neither a site nor a feed. */
export function affectedCount({ affected }: Pick<Incident, 'affected'>): string {
  const { sites, feeds } = affected
  const parts = [sites > 0 ? many(sites, 'site') : '', feeds > 0 ? many(feeds, 'feed') : '']
  return parts.filter((part) => part !== '').join(', ')
}

/** A count with its noun: `1 site`, `12 sites`. */
export function many(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`
}

function stepOf({ kind, site, feed, circuit }: IncidentAction): Step | null {
  switch (kind) {
    case 'open-site':
      return site === null ? null : { title: `Open ${site}`, address: addressOf('sites', site) }
    case 'probe-path':
      return site === null ? null : { title: 'Probe the path', address: addressOf('sites', site) }
    case 'open-feed':
      return feed === null ? null : { title: `Open ${feed}`, address: addressOf('feeds', feed) }
    case 'preview-move':
      return feed === null ? null : { title: 'Compare transports', address: addressOf('feeds', feed) }
    case 'open-latency':
      return { title: 'Open the latency', address: addressOf('latency', null, { site, feed }) }
    case 'open-circuit':
      return { title: 'Open the circuit', address: addressOf('circuits', circuit === null ? null : String(circuit)) }
  }
}

const MOST_STEPS = 2
