/** Gaps as grounds of the chart. */
import type { Gap } from '../../latencyview'
import { nameOf, shownLines, keyOf, type Line, type LinesView } from '../linesview'
import type { Silence } from './options'

/** The longest gaps of the lines that are shown; their names are left out where they would cover each other. */
export function silencesOf(view: LinesView, gaps: readonly { line: Line; gaps: readonly Gap[] }[]): Silence[] {
  const shown = new Set(shownLines(view).map(keyOf))
  const all = gaps
    .filter(({ line }) => shown.has(keyOf(line)))
    .flatMap(({ line, gaps: some }) => some.map((gap) => ({ gap, name: nameOf(line, view.lines) })))
    .toSorted((one, other) => other.gap.minutes - one.gap.minutes)
    .slice(0, MOST_DRAWN)
  return all.map(({ gap, name }) => ({
    from_ms: Date.parse(gap.from),
    to_ms: Date.parse(gap.to),
    name: gap.minutes / view.minutes < NAMED_FROM ? '' : shown.size > 1 ? `no report: ${name}` : 'no report',
  }))
}

const MOST_DRAWN = 40
/** A gap that is shorter than a twelfth of the range has no room for words. */
const NAMED_FROM = 1 / 12
