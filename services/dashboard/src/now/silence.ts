/** Silences of an incident: of this alarm, or of all alarms of its feed or site, with an end. */
import type { Incident } from '../api'

export interface Offer {
  title: string
  /** The body of the request. */
  body: Record<string, string | number | null>
}

type Subject = Pick<Incident, 'kind' | 'feed' | 'site' | 'alarm'>

/** The choices for an incident, in groups of one subject. */
export function silencesFor(incident: Subject): { title: string; offers: Offer[] }[] {
  const { kind, feed, site, alarm } = incident
  const subjects = [
    { title: 'This alarm', about: alarm === null ? { kind, feed, site } : { alarm } },
    ...(site === null ? [] : [{ title: `All alarms of ${site}`, about: { site } }]),
    ...(feed === null ? [] : [{ title: `All alarms of ${feed}`, about: { feed } }]),
  ]
  return subjects.map(({ title, about }) => ({
    title,
    offers: LENGTHS.map(({ minutes, words }) => ({
      title: `For ${words}`,
      body: { minutes, reason: 'silenced on the page', ...about },
    })),
  }))
}

const LENGTHS = [
  { minutes: 60, words: '1 hour' },
  { minutes: 4 * 60, words: '4 hours' },
  { minutes: 24 * 60, words: '1 day' },
]
