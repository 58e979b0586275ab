/** The strip of the last day: a row for each site, a cell for each quarter hour. */
import { latency, percent, span, whole } from '../format'
import type { CellState, Strip, StripCell, StripNow, StripRow } from '../api'

/** A cell as it is drawn: four levels of the objective, and states that a share alone does not tell. */
export type Look = 'level-1' | 'level-2' | 'level-3' | 'level-4' | 'late' | 'down' | 'no-report' | 'nothing' | 'unread'

export interface Slot {
  /** When it begins, in milliseconds since 1970. */
  at: number
  cell: StripCell
}

export interface Tick {
  /** The slot at whose beginning it stands, from 0. */
  slot: number
  text: string
  /** The first one of a day. */
  isDay: boolean
}

/** The look of a cell; its levels end at 10, 25, 50 and 100 % of the objective. */
export function lookOf({ state, share }: Pick<StripCell, 'state' | 'share'>): Look {
  if (state !== 'within') return state
  const level = LEVELS.findIndex((most) => (share ?? 0) <= most)
  return `level-${level < 0 ? 4 : level + 1}` as Look
}

/** The slots of a row; with `perSlot` quarter hours in one, it shows the worst of them. */
export function slotsOf(row: StripRow, quarters: readonly string[], perSlot = 1): Slot[] {
  const cells = row.cells.map((cell, index) => ({ at: Date.parse(quarters[index] ?? ''), cell }))
  const groups = new Map<number, Slot>()
  for (const one of cells) {
    const at = Math.floor(one.at / (perSlot * QUARTER_MS)) * perSlot * QUARTER_MS
    const known = groups.get(at)
    groups.set(at, known === undefined ? { at, cell: one.cell } : { at, cell: worseOf(known.cell, one.cell) })
  }
  return [...groups.values()]
}

/** Labels with room to their right every third hour, on a phone every twelfth; the first one of a day names it. */
export function ticksOf(slots: readonly Slot[], isPhone = false): Tick[] {
  const { every_h, last } = isPhone ? ON_A_PHONE : AT_A_DESK
  return slots.flatMap(({ at }, slot) => {
    if (at % (every_h * 4 * QUARTER_MS) !== 0 || slot > slots.length * last) return []
    const moment = new Date(at)
    const isDay = moment.getUTCHours() === 0
    const time = moment.toISOString().slice(11, 16)
    return [{ slot, text: isDay ? `${DAYS[moment.getUTCDay()]} ${time}` : time, isDay }]
  })
}

/** The words of a cell for a pointer: `18:15: 164 % of the objective, NGRID`. */
export function cellWords({ at, cell }: Slot, minutes: number): string {
  const share = cell.share === null ? '' : `, ${percent(cell.share)} of the objective by ${cell.feed ?? 'a feed'}`
  const from = new Date(at).toISOString().slice(11, 16)
  const to = new Date(at + minutes * 60_000).toISOString().slice(11, 16)
  return `${from} to ${to} UTC: ${STATE_WORDS[cell.state]}${share}`
}

/** The words of a row for a screen reader. */
export function rowWords(row: StripRow): string {
  const count = (state: CellState) => row.cells.filter((cell) => cell.state === state).length
  const parts = (['down', 'late', 'no-report'] as const).flatMap((state) => {
    const found = count(state)
    return found === 0 ? [] : [`${found} ${STATE_WORDS[state]}`]
  })
  const of = `of ${row.cells.length} quarter hours`
  return parts.length === 0 ? `within the objectives or without products in all ${of}` : `${parts.join(', ')} ${of}`
}

/** The present of a row in two parts: a figure and the feed behind it. */
export function nowWords(now: StripNow, hubNow: string): { figure: string; feed: string } {
  if (now.state === 'down') {
    const since_s = now.since === null ? null : (Date.parse(hubNow) - Date.parse(now.since)) / 1000
    return { figure: since_s === null ? 'down' : `down, ${span(since_s)}`, feed: '' }
  }
  if (now.share === null) return { figure: STATE_WORDS[now.state], feed: '' }
  return { figure: percent(now.share), feed: now.feed ?? '' }
}

/** The figures behind the present of a row. */
export function nowDetail(now: StripNow): string {
  if (now.p99_ms === null) return ''
  const few = now.products < FEW_PRODUCTS ? 'the worst' : 'p99'
  const measured = `${few} of ${whole(now.products)} products in 15 minutes is ${latency(now.p99_ms)}`
  return `${measured}, the objective ${latency(now.objective_ms)}`
}

/** Sentences for the sites that sent no reports: `unl.edu sent no latency reports from 06:15 to 09:00.` */
export function silencesOf(strip: Strip): string[] {
  const found = strip.rows.flatMap((row) => runsOf(row).map(([first, last]) => silenceOf(row, strip, first, last)))
  const more = found.length - SILENCES_NAMED
  return more > 0 ? [...found.slice(0, SILENCES_NAMED), `${whole(more)} more such times are hatched.`] : found
}

/** First and last cell of each run of cells without a report. */
function runsOf(row: StripRow): [number, number][] {
  const runs: [number, number][] = []
  row.cells.forEach(({ state }, at) => {
    const run = runs.at(-1)
    if (state !== 'no-report') return
    if (run?.[1] === at - 1) run[1] = at
    else runs.push([at, at])
  })
  return runs
}

function silenceOf(row: StripRow, { quarters }: Strip, first: number, last: number): string {
  const timeOf = (ms: number) => new Date(ms).toISOString().slice(11, 16)
  const from = timeOf(Date.parse(quarters[first] ?? ''))
  const until = timeOf(Date.parse(quarters[last] ?? '') + QUARTER_MS)
  const when = last === row.cells.length - 1 ? `since ${from}` : `from ${from} to ${until}`
  return `${rowName(row)} sent no latency reports ${when}.`
}

/** The name of a row: the site, or how many others it sums up. */
export function rowName(row: StripRow): string {
  return row.site ?? `${whole(row.sites)} other${row.sites === 1 ? '' : 's'}`
}

/** All rows, the sum of the others last. */
export function rowsOf(strip: Strip): StripRow[] {
  return strip.others === null ? strip.rows : [...strip.rows, strip.others]
}

/** True while the hub still reads its history after a start. */
export function isPartial(strip: Strip): boolean {
  return rowsOf(strip).some((row) => row.cells.some((cell) => cell.state === 'unread'))
}

function worseOf(one: StripCell, other: StripCell): StripCell {
  const rank = (cell: StripCell) => WORST_FIRST.indexOf(cell.state)
  if (rank(one) !== rank(other)) return rank(one) < rank(other) ? one : other
  return (other.share ?? 0) > (one.share ?? 0) ? other : one
}

const LEVELS = [0.1, 0.25, 0.5, 1]
const QUARTER_MS = 900_000
/** `last`: the share of a row behind which a label has no room. A day's name takes a third of a phone's row. */
const AT_A_DESK = { every_h: 3, last: 0.95 }
const ON_A_PHONE = { every_h: 12, last: 0.65 }
const SILENCES_NAMED = 3
/** Below it a p99 by nearest rank is the maximum. */
const FEW_PRODUCTS = 20
const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const WORST_FIRST: CellState[] = ['down', 'late', 'no-report', 'within', 'unread', 'nothing']
const STATE_WORDS: Record<CellState, string> = {
  down: 'down',
  late: 'late',
  'no-report': 'no report',
  within: 'within the objective',
  nothing: 'no products due',
  unread: 'not read yet',
}
