/** The hub's clock and its link in the words of the bar. */
import { span } from '../format'
import type { Liveness } from './given'

export interface Clock {
  /** `18:42:07` */
  time: string
  /** `Mon 23 Nov` */
  day: string
}

/** A moment in UTC; null for what is no moment. */
export function clockOf(at: string): Clock | null {
  const moment = new Date(at)
  if (Number.isNaN(moment.getTime())) return null
  const day = `${DAYS[moment.getUTCDay()]} ${moment.getUTCDate()} ${MONTHS[moment.getUTCMonth()]}`
  return { time: moment.toISOString().slice(11, 19), day }
}

/** The state of the link in two or three words. */
export function linkWords({ link, silent_s }: Liveness): string {
  if (link === 'stale') return silent_s === null ? 'No answer' : `No answer for ${span(silent_s)}`
  return link === 'live' ? 'Live' : link === 'polling' ? 'Polling' : 'Connecting'
}

/** The sentence under the bar while figures may be old; empty while they are live. */
export function linkSentence({ link, now }: Liveness): string {
  if (link === 'polling') return 'Live updates do not arrive. The page polls the hub every second instead.'
  if (link !== 'stale') return ''
  const time = clockOf(now)?.time ?? 'its last report'
  return `The hub does not answer. The figures are of ${time}. The page keeps retrying.`
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
