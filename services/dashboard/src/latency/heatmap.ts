/** The heat map of sites by the hour: ticks, and the words of its cells. */
import type { Heat, HeatCell, HeatRow } from '../api'
import { latency, percent, whole } from '../format'
import { tickWords } from './chart/days'
import { momentOf, stepWord } from './curves'
import type { LinesView, Zone } from './linesview'

/** The question for a feed's heat map, behind `latency/heat?`. */
export function heatQuestion(view: LinesView, feed: string, site: string | null, limit: number): string {
  const asked = new URLSearchParams({ feed, minutes: String(view.minutes), limit: String(limit) })
  if (site !== null) asked.set('site', site)
  if (view.until !== null) asked.set('until', view.until)
  return asked.toString()
}

/** Labels of at most so many columns; the first of a day names it. */
export function heatTicks(heat: Heat, zone: Zone, most: number): { column: number; text: string; isDay: boolean }[] {
  const every = EVERY.find((one) => heat.steps.length / one <= most) ?? heat.steps.length
  return heat.steps.flatMap((at, column) => {
    if (column > heat.steps.length * WIDEST_AT) return []
    const tick = tickWords(Date.parse(at), zone)
    const isDue = heat.step_minutes >= 1440 ? column % every === 0 : tick.hour % Math.min(every, 24) === 0
    const isShown = isDue && (every < 24 || (tick.isDay && tick.date % Math.ceil(every / 24) === 0))
    return isShown ? [{ column, text: heat.step_minutes >= 1440 ? tick.day : tick.text, isDay: tick.isDay }] : []
  })
}

/** `2026-03-14 10:00: within the objective, p99 0.98 s, 3 % of it, 1204 products`. */
export function heatCellWords(cell: HeatCell, at: string, zone: Zone): string {
  const words = `${momentOf(Date.parse(at), zone)}: ${HEAT_WORDS[cell.state]}`
  if (cell.p99_ms === null) return words
  const figure = `${cell.products < FEW_PRODUCTS ? 'worst' : 'p99'} ${latency(cell.p99_ms)}`
  return `${words}, ${figure}, ${percent(cell.share)} of the objective, ${whole(cell.products)} products`
}

/** The words of a row for a screen reader. */
export function heatRowWords(row: HeatRow, step_minutes: number): string {
  const steps = `${row.cells.length} ${stepWord(step_minutes * 60_000)}s`
  const found = (['down', 'late', 'no-report', 'unread'] as const).flatMap((state) => {
    const count = row.cells.filter((cell) => cell.state === state).length
    return count === 0 ? [] : [`${count} ${HEAT_WORDS[state]}`]
  })
  const worst = row.cells.reduce<HeatCell | null>(
    (one, other) => ((other.share ?? -1) > (one?.share ?? -1) ? other : one),
    null,
  )
  const highest = worst?.share == null ? 'no latency reported' : `highest p99 ${latency(worst.p99_ms)}`
  const states = found.length === 0 ? '' : `, ${found.join(', ')}`
  return `${highest}, objective ${latency(row.objective_ms)}${states}, of ${steps}`
}

export const HEAT_WORDS: Record<HeatCell['state'], string> = {
  down: 'down',
  late: 'late',
  'no-report': 'no report',
  within: 'within the objective',
  nothing: 'no products due',
  unread: 'not read yet',
}
const EVERY = [1, 2, 3, 6, 12, 24, 48, 72, 120]
const WIDEST_AT = 0.95
const FEW_PRODUCTS = 20
