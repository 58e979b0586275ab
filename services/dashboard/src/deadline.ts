/** Feeds with a deadline: the text of its field, and a feed's newest seconds by site. */
import type { FeedSecond } from './api'

/** The deadline in a field: milliseconds, null for an empty one; undefined: no possible deadline. */
export function deadlineOf(text: string): number | null | undefined {
  if (text.trim() === '') return null
  const value = Number(text)
  return Number.isInteger(value) && value >= 1 && value <= LONGEST_MS ? value : undefined
}

/** The complete seconds of each site, the oldest first, with the share of records that were in time. */
export function bySite(seconds: readonly FeedSecond[]): { site: string; seconds: FeedSecond[]; inTime: number[] }[] {
  const sites = new Map<string, FeedSecond[]>()
  for (const second of seconds) sites.set(second.site, [second, ...(sites.get(second.site) ?? [])])
  return [...sites.entries()]
    .toSorted(([one], [other]) => one.localeCompare(other))
    .map(([site, its]) => ({ site, seconds: its, inTime: its.map(shareInTime) }))
}

/** The share of a second's records that were in time, 0 to 1; 1 of none. */
export function shareInTime(second: FeedSecond): number {
  const all = second.stored + second.late_at_hub + second.late_at_site + second.lost
  return all === 0 ? 1 : second.stored / all
}

const LONGEST_MS = 86_400_000
