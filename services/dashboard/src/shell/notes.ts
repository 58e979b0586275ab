/** Counts and alarms at the entries of the rail. */
import type { Link } from '../live'
import type { Overview } from '../overview'
import type { Note } from './given'
import type { Section } from './sections'

/** Of a hub that doesn't answer nothing is known now, so no state is green. */
export function notesOf({ faults, feeds, sites }: Overview, link: Link): Partial<Record<Section, Note>> {
  const loud = faults.filter((one) => one.silence === null)
  const count = (severity: string) => loud.filter((one) => one.severity === severity).length
  return {
    now: nowNote(count('critical'), count('warning'), link, sites.length),
    feeds: { text: String(feeds.length) },
    sites: { text: String(sites.filter((site) => !site.relay).length) },
  }
}

function nowNote(critical: number, warning: number, link: Link, sites: number): Note {
  if (link === 'stale') return { text: '', state: 'unknown' }
  if (critical > 0) return { text: String(critical), state: 'critical' }
  if (warning > 0) return { text: String(warning), state: 'warning' }
  return { text: '', state: sites > 0 ? 'within' : 'unknown' }
}
