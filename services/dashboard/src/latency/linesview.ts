/** The view of the page *Latency*, and the address that reproduces it. */
import { KINDS, lookOf, type Kind } from '../latencyview'
import { addressOf } from '../route'

/** A feed at a site; `null`: at all sites together. */
export interface Line {
  feed: string
  site: string | null
}

export type Figure = 'p50' | 'p95' | 'p99' | 'max'
export type Scale = 'log' | 'linear'
export type Zone = 'utc' | 'local'

export interface LinesView {
  /** In the order of their colours; without a feed there is none. */
  lines: Line[]
  /** Lines that the legend has switched off, by their keys. */
  off: string[]
  kind: Kind
  figure: Figure
  /** So many minutes up to `until`. */
  minutes: number
  /** RFC 3339; `null`: now. */
  until: string | null
  scale: Scale
  zone: Zone
  /** The same range seven days before, behind each line. */
  weekBefore: boolean
}

/** The view that an address asks for. `feed` is shown where it names none; `site` is the only one that the user has. */
export function viewOf(query: URLSearchParams, feed: string, site: string | null = null): LinesView {
  const look = lookOf(withRange(query), feed)
  const named = [{ feed: look.feed, site: look.site }, ...(query.get('with') ?? '').split(' ').flatMap(lineIn)]
  const lines = named.filter((one) => one.feed !== '').map((one) => (site === null ? one : { ...one, site }))
  return {
    lines: distinct(lines).slice(0, MOST_LINES),
    off: (query.get('off') ?? '').split(' ').filter((one) => one !== ''),
    kind: look.kind,
    figure: FIGURES.find((one) => one.figure === query.get('show'))?.figure ?? 'p99',
    minutes: look.minutes,
    until: look.until,
    scale: query.get('scale') === 'linear' ? 'linear' : 'log',
    zone: query.get('time') === 'local' ? 'local' : 'utc',
    weekBefore: query.get('before') === 'week',
  }
}

/** The address that reproduces a view, with what is changed in it. */
export function addressOfView(view: LinesView, changes: Partial<LinesView> = {}): string {
  const { lines, off, ...others } = { ...view, ...changes }
  const [first, ...more] = lines
  const from = others.until === null ? null : new Date(Date.parse(others.until) - others.minutes * 60_000)
  return addressOf('latency', null, {
    site: first?.site ?? null,
    feed: first?.feed ?? null,
    with: more.map(keyOf).join(' '),
    off: off.filter((key) => lines.some((line) => keyOf(line) === key)).join(' '),
    of: others.kind === 'distribution' ? null : others.kind,
    show: others.figure === 'p99' ? null : others.figure,
    minutes: from === null ? String(others.minutes) : null,
    from: from === null ? null : seconds(from),
    to: others.until,
    scale: others.scale === 'log' ? null : others.scale,
    time: others.zone === 'utc' ? null : others.zone,
    before: others.weekBefore ? 'week' : null,
  })
}

/** The key of a line: no name has a space, and no site's name an `@`. */
export function keyOf(line: Line): string {
  return `${line.feed}@${line.site ?? ''}`
}

/** Adds a line, or removes it. The first chosen line replaces the one that an address without any stands for. */
export function toggled(view: LinesView, line: Line, isChosen: boolean): Partial<LinesView> {
  const key = keyOf(line)
  if (!isChosen) return { lines: [line], off: [] }
  const without = view.lines.filter((one) => keyOf(one) !== key)
  if (without.length < view.lines.length) return without.length === 0 ? {} : { lines: without }
  return view.lines.length < MOST_LINES ? { lines: [...view.lines, line] } : {}
}

/** Switches a line off or on; the last one that is on stays. */
export function switched(view: LinesView, line: Line): Partial<LinesView> {
  const key = keyOf(line)
  if (view.off.includes(key)) return { off: view.off.filter((one) => one !== key) }
  return shownLines(view).length > 1 ? { off: [...view.off, key] } : {}
}

/** The lines that are on. */
export function shownLines(view: LinesView): Line[] {
  const on = view.lines.filter((line) => !view.off.includes(keyOf(line)))
  return on.length > 0 ? on : view.lines
}

/** A range between two moments, to whole minutes; at least two, so that a zoom ends somewhere. */
export function between(from_ms: number, to_ms: number): Pick<LinesView, 'minutes' | 'until'> {
  const [first, last] = [Math.min(from_ms, to_ms), Math.max(from_ms, to_ms)]
  const begin = Math.floor(first / 60_000)
  const end = Math.max(Math.ceil(last / 60_000), begin + LEAST_MINUTES)
  return { minutes: end - begin, until: seconds(new Date(end * 60_000)) }
}

/** Twice the range around its middle, not beyond the present. */
export function wider(view: LinesView, now_ms: number): Pick<LinesView, 'minutes' | 'until'> {
  const minutes = Math.min(view.minutes * 2, MOST_MINUTES)
  if (view.until === null) return { minutes, until: null }
  const end_ms = Date.parse(view.until) + ((minutes - view.minutes) / 2) * 60_000
  return { minutes, until: end_ms >= now_ms ? null : seconds(new Date(end_ms)) }
}

/** The title of the page. */
export function titleOfLines(lines: Line[]): string {
  const [feeds, sites] = [new Set(lines.map((one) => one.feed)), new Set(lines.map((one) => one.site))]
  if (lines.length === 0) return 'Latency'
  const feed = feeds.size === 1 ? [...feeds][0] : `${feeds.size} feeds`
  const site = sites.size === 1 ? ([...sites][0] ?? 'all sites') : listOf([...sites])
  return `Latency of ${feed} at ${site}`
}

/** The name of a line beside others: what they have in common is left out. */
export function nameOf(line: Line, lines: Line[]): string {
  const [feeds, sites] = [new Set(lines.map((one) => one.feed)), new Set(lines.map((one) => one.site))]
  const site = line.site ?? 'all sites'
  if (feeds.size <= 1) return site
  return sites.size <= 1 ? line.feed : `${site} ${line.feed}`
}

/** The question for one line, behind `latency/histogram?`. */
export function lineQuestion(view: LinesView, line: Line, until: string | null = view.until): string {
  const asked = new URLSearchParams({ feed: line.feed, kind: view.kind, minutes: String(view.minutes) })
  if (line.site !== null) asked.set('site', line.site)
  if (until !== null) asked.set('until', until)
  return asked.toString()
}

/** The end of the same range seven days before: how long ago if the range ends now. */
export function weekBefore(view: LinesView): string {
  return view.until === null ? '7d' : seconds(new Date(Date.parse(view.until) - WEEK_MS))
}

/** The steps of a range's history; longer ones would hide what a chart can show. */
export function stepOfRange(minutes: number): 'minute' | '5-minutes' | 'hour' | 'day' {
  if (minutes <= 360) return 'minute'
  if (minutes <= 1440) return '5-minutes'
  return minutes <= 62 * 1440 ? 'hour' : 'day'
}

function lineIn(text: string): Line[] {
  const at = text.lastIndexOf('@')
  return at <= 0 ? [] : [{ feed: text.slice(0, at), site: text.slice(at + 1) || null }]
}

/** The range is a day unless the address names one. */
function withRange(query: URLSearchParams): URLSearchParams {
  if (query.has('minutes') || query.has('from')) return query
  return new URLSearchParams([...query, ['minutes', '1440']])
}

function distinct(lines: Line[]): Line[] {
  return [...new Map(lines.map((line) => [keyOf(line), line])).values()]
}

function listOf(sites: (string | null)[]): string {
  const named = sites.map((site) => site ?? 'all sites')
  if (named.length > NAMES_IN_TITLE) return `${named.length} sites`
  return `${named.slice(0, -1).join(', ')} and ${named.at(-1) ?? ''}`
}

function seconds(at: Date): string {
  return `${at.toISOString().slice(0, 19)}Z`
}

export { KINDS }
export type { Kind }
export const FIGURES: { figure: Figure; title: string }[] = [
  { figure: 'p50', title: 'p50' },
  { figure: 'p95', title: 'p95' },
  { figure: 'p99', title: 'p99' },
  { figure: 'max', title: 'worst' },
]
export const LINE_RANGES: { minutes: number; title: string }[] = [
  { minutes: 60, title: '1 h' },
  { minutes: 360, title: '6 h' },
  { minutes: 1440, title: '24 h' },
  { minutes: 7 * 1440, title: '7 d' },
  { minutes: 30 * 1440, title: '30 d' },
  { minutes: 365 * 1440, title: '1 y' },
]
export const KIND_WORDS: Record<Kind, string> = {
  distribution: 'Distribution',
  'end-to-end': 'End to end',
  queueing: 'Hub queue',
  action: 'Action',
}
export const KIND_NOTES: Record<Kind, string> = {
  distribution: 'stored at the hub to stored at the site; live products only',
  'end-to-end': 'created to stored at the site; live products only',
  queueing: 'stored at the hub to first byte sent; live products only',
  action: 'stored at the site to file in place; live products only',
}
export const MOST_LINES = 8
export const WEEK_MS = 7 * 86_400_000
const NAMES_IN_TITLE = 3
const LEAST_MINUTES = 2
const MOST_MINUTES = 365 * 1440
