/** Which rows a view shows, and in which order. */
import type { RowView } from './rowview'

export interface Column<Row> {
  key: string
  title: string
  /** Figures stand at the right, and are ordered from the largest. */
  isFigure?: boolean
  /** Of the column in pixels; without it the column takes a share of the rest. */
  width_px?: number
  /** Left out beside the drawer, and on a narrow screen. */
  isExtra?: boolean
  /** Its place on a card: the title, at its right end, or on the second line; without one it is left out. */
  card?: 'title' | 'end' | 'second'
  /** What orders the rows; null comes last either way. */
  value: (row: Row) => string | number | null
}

/** How rows are filtered. */
export interface Filters<Row> {
  name: (row: Row) => string
  /** The text that is searched. */
  text: (row: Row) => string
  state: (row: Row) => string
  choices: Record<string, (row: Row, chosen: string) => boolean>
}

export interface Found<Row> {
  rows: Row[]
  /** Rows by state that match the other filters. */
  counts: Map<string, number>
}

export function found<Row>(
  rows: readonly Row[],
  view: RowView,
  filters: Filters<Row>,
  columns: readonly Column<Row>[],
): Found<Row> {
  const matching = rows.filter((row) => matches(row, view, filters))
  const counts = new Map<string, number>()
  for (const row of matching) counts.set(filters.state(row), (counts.get(filters.state(row)) ?? 0) + 1)
  const shown = view.states.length === 0 ? matching : matching.filter((row) => view.states.includes(filters.state(row)))
  return { rows: sorted(shown, view, filters.name, columns), counts }
}

function matches<Row>(row: Row, view: RowView, filters: Filters<Row>): boolean {
  const text = filters.text(row).toLowerCase()
  const words = view.text.toLowerCase().split(/\s+/).filter(Boolean)
  const isChosen = ([key, chosen]: [string, string]) => chosen === '' || (filters.choices[key]?.(row, chosen) ?? true)
  return words.every((word) => text.includes(word)) && Object.entries(view.choices).every(isChosen)
}

function sorted<Row>(
  rows: readonly Row[],
  view: RowView,
  name: (row: Row) => string,
  columns: readonly Column<Row>[],
): Row[] {
  const value = (columns.find((column) => column.key === view.sort) ?? columns[0])?.value ?? name
  const sign = view.isDescending ? -1 : 1
  return rows
    .map((row) => ({ row, value: value(row), name: name(row) }))
    .sort((one, other) => compared(one.value, other.value, sign) || byName(one.name, other.name))
    .map(({ row }) => row)
}

function compared(one: string | number | null, other: string | number | null, sign: number): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null)
  if (typeof one === 'number' && typeof other === 'number') return sign * (one - other)
  return sign * byName(String(one), String(other))
}

/** Names with numbers in the order of the numbers: `site2`, `site10`. */
const byName = new Intl.Collator('en', { numeric: true }).compare
