/** Labels of moments on axes. */
import type { Zone } from '../linesview'

export interface TickWords {
  /** `10:00`, or at midnight the day. */
  text: string
  /** `Sat 14`. */
  day: string
  isDay: boolean
  hour: number
  date: number
}

export function tickWords(at_ms: number, zone: Zone): TickWords {
  const moment = new Date(zone === 'utc' ? at_ms : at_ms - new Date(at_ms).getTimezoneOffset() * 60_000)
  const time = moment.toISOString().slice(11, 16)
  const day = `${DAYS[moment.getUTCDay()]} ${moment.getUTCDate()}`
  const isDay = time === '00:00'
  return { text: isDay ? day : time, day, isDay, hour: moment.getUTCHours(), date: moment.getUTCDate() }
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
