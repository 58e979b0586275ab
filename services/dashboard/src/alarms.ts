/** Alarms, silences, recipients and latency objectives. */
import words from './alarm-words.json'
import type { Alarm, Fault, Objective, Receiver, ReceiverKind, Silence } from './api'
import { latency, percent, span } from './format'

export type { Alarm, Objective, Receiver, ReceiverKind, Silence }

/** The severity, and the silence that stops notifications, if any. */
export type Judged = Pick<Alarm | Fault, 'severity' | 'silence'>

/** What a silence keeps quiet: `clock alarms of unl.edu`. */
export function aboutOf(silence: Silence): string {
  const about = [silence.feed, silence.site].filter(Boolean).join(' at ')
  const what = silence.kind ? `${silence.kind} alarms` : 'all alarms'
  return about === '' ? what : `${what} of ${about}`
}

/** When a silence holds, in UTC. */
export function windowOf(silence: Silence): string {
  return silence.begins ? `${utc(silence.begins)} to ${utc(silence.until)}` : `until ${utc(silence.until)}`
}

/** Whether a silence starts later; an unreadable time counts as past. */
export function isAhead(silence: Silence, now: Date): boolean {
  return silence.begins !== null && Date.parse(silence.begins) > now.getTime()
}

/** An address without possible secrets: of a URL only the host. */
export function shownAddress(receiver: Pick<Receiver, 'kind' | 'address'>): string {
  if (receiver.kind === 'mail') return receiver.address
  try {
    const url = new URL(receiver.address)
    return url.pathname === '/' && url.search === '' ? url.origin : `${url.origin}/…`
  } catch {
    return receiver.kind
  }
}

/** The alarms that a recipient gets: `silence, clock alarms of NGRID`. */
export function heardBy(receiver: Receiver): string {
  const kinds = receiver.kinds.length > 0 ? `${receiver.kinds.join(', ')} alarms` : 'all alarms'
  const some = receiver.severities.length < SEVERITIES.length ? ` (${receiver.severities.join(', ')})` : ''
  const about = [receiver.feeds.join(', '), receiver.sites.join(', ')].filter((one) => one !== '').join(' at ')
  return about === '' ? `${kinds}${some}` : `${kinds} of ${about}${some}`
}

/** An objective in words: `99 % within 2.00 s, over 15 min`. */
export function objectiveInWords(objective: Objective): string {
  const share = objective.quantile === null ? 'the default share' : percent(objective.quantile)
  const over = objective.minutes === null ? 'the default period' : span(objective.minutes * 60)
  return `${share} within ${latency(objective.objective_ms)}, over ${over}`
}

/** A moment to the minute, in UTC: `2026-01-31 12:00`. */
export function utc(at: string): string {
  const moment = new Date(at)
  return Number.isNaN(moment.getTime()) ? at : moment.toISOString().slice(0, 16).replace('T', ' ')
}

/** What a field for a moment in UTC holds, as the api reads it; nothing for an empty field. */
export function begins(field: string): { begins?: string } {
  return field === '' ? {} : { begins: `${field}:00Z` }
}

/** How many of each severity are not silenced, and how many are: `1 critical, 2 warning; 3 silenced`. */
export function counted(wrong: Judged[]): string {
  const loud = wrong.filter((one) => one.silence === null)
  const many = SEVERITIES.map((severity) => [loud.filter((one) => one.severity === severity).length, severity] as const)
  const listed = many.filter(([count]) => count > 0).map(([count, severity]) => `${count} ${severity}`)
  const silenced = wrong.length - loud.length
  return [listed.join(', '), silenced > 0 ? `${silenced} silenced` : ''].filter((one) => one !== '').join('; ')
}

/** The worst first, of those the newest. */
export function worstFirst<T extends Judged>(wrong: T[], since: (one: T) => string): T[] {
  const rank = (one: T) => SEVERITIES.indexOf(one.severity)
  return wrong.toSorted((one, other) => rank(one) - rank(other) || Date.parse(since(other)) - Date.parse(since(one)))
}

/** End and author of a silence; empty if there is none. */
export function silencedBy(one: Pick<Judged, 'silence'>): string {
  return one.silence === null ? '' : `silenced until ${utc(one.silence.until)} UTC by ${one.silence.by}`
}

/** As the api names them; a test of the hub compares. */
export const ALARM_KINDS: string[] = words.kinds
/** The worst first. */
export const SEVERITIES: string[] = words.severities
/** How long people work on a site. */
export const LENGTHS = [
  { minutes: 60, title: '1 hour' },
  { minutes: 4 * 60, title: '4 hours' },
  { minutes: 24 * 60, title: '1 day' },
  { minutes: 7 * 24 * 60, title: '7 days' },
  { minutes: 30 * 24 * 60, title: '30 days' },
]
