/** What subscriptions would bring, from the hub's own measurements. */
import type { FeedVolume, PatternTested, Subscription, Volume } from '../api'
import { bytes, span, whole } from '../format'
import { call } from '../hub'
import type { Preview } from './form'

export interface Wanted {
  feeds: readonly string[]
  /** Empty: all products. */
  pattern: string | null
  not_pattern: string | null
}

/** What a feed would bring in an hour; null: not measured. */
interface Hour {
  feed: string
  products: number | null
  bytes: number | null
  note: string
}

/** The traffic that subscriptions add to what the site takes already. */
export async function moreTraffic(
  wanted: Wanted,
  taken: readonly Subscription[],
  signal?: AbortSignal,
): Promise<Preview | null> {
  if (wanted.feeds.length === 0) return null
  const isWhole = wanted.pattern === null && wanted.not_pattern === null
  const volume = isWhole ? await call<Volume>('GET', `volume?minutes=${DAY_MIN}`, undefined, signal) : null
  const hours: Hour[] = []
  for (const feed of wanted.feeds) {
    if (isTakenWhole(feed, taken)) hours.push({ feed, products: 0, bytes: 0, note: 'taken already' })
    else hours.push(volume === null ? await triedOut(feed, wanted, signal) : hourOf(feed, volume))
  }
  const period = volume === null ? 'the last hour' : spanOf(volume)
  return { sentence: sentenceOf(hours, period), columns: COLUMNS, rows: hours.map(rowOf) }
}

function hourOf(feed: string, volume: Volume): Hour {
  const found: FeedVolume | undefined = volume.feeds.find((one) => one.feed === feed)
  if (volume.hours_seen <= 0) return { feed, products: null, bytes: null, note: '' }
  return { feed, products: found?.products_per_hour ?? 0, bytes: found?.mean_bytes_per_hour ?? 0, note: '' }
}

/** A pattern is tried on the products of the last hour; one feed after another, as each reads the hub's log. */
async function triedOut(feed: string, { pattern, not_pattern }: Wanted, signal?: AbortSignal): Promise<Hour> {
  const test = { pattern: pattern ?? '.*', ...(not_pattern === null ? {} : { not_pattern }), hours: 1 }
  const found = await call<PatternTested>('POST', `feeds/${encodeURIComponent(feed)}/pattern-test`, test, signal)
  const note = found.complete ? '' : 'at least'
  return { feed, products: found.matched, bytes: found.matched_bytes, note }
}

function sentenceOf(hours: Hour[], period: string): string {
  const known = hours.filter((one) => one.products !== null)
  if (known.length === 0) return 'The hub has not measured these feeds yet.'
  const sum = (values: (number | null)[]) => values.reduce<number>((all, one) => all + (one ?? 0), 0)
  const least = hours.some((one) => one.note === 'at least') ? 'At least ' : ''
  const products = whole(Math.round(sum(hours.map((one) => one.products))))
  return `${least}${products} products with ${bytes(sum(hours.map((one) => one.bytes)))} an hour more, as in ${period}.`
}

function spanOf(volume: Volume): string {
  return `the last ${span(Math.min(volume.hours_seen * 3600, DAY_MIN * 60))}`
}

function rowOf(hour: Hour): Preview['rows'][number] {
  const name = hour.note === '' ? hour.feed : `${hour.feed} (${hour.note})`
  const products = hour.products === null ? 'not measured' : whole(Math.round(hour.products))
  return { name, cells: [products, bytes(hour.bytes)] }
}

function isTakenWhole(feed: string, taken: readonly Subscription[]): boolean {
  return taken.some((one) => one.feed === feed && one.pattern === '.*' && one.not_pattern === null)
}

const DAY_MIN = 1440
const COLUMNS: Preview['columns'] = ['Products an hour', 'Bytes an hour']
