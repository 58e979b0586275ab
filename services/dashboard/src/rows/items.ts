/** What a list draws: rows, and the headings of groups, each with its height. */

/** All columns, those that fit beside a drawer, or a card of two lines for each row. */
export type Shape = 'whole' | 'reduced' | 'cards'

export interface RowItem<Row> {
  row: Row | null
  /** The number of the row, from 1; of a heading 0. */
  number: number
  /** The heading; empty for rows. */
  group: string
  /** The rows below a heading. */
  rows: readonly Row[]
  height_px: number
}

/** Rows under headings, while they are ordered by a column that is left out. */
export interface Group<Row> {
  /** The column. */
  key: string
  of: (row: Row) => string
  /** Beside the heading. */
  words: (rows: readonly Row[]) => string
}

export function shapeOf(width_px: number): Shape {
  // Nothing is measured before the first frame.
  if (width_px === 0 || width_px >= WHOLE_FROM_PX) return 'whole'
  return width_px >= REDUCED_FROM_PX ? 'reduced' : 'cards'
}

export function itemsOf<Row>(
  rows: readonly Row[],
  groupOf: ((row: Row) => string) | null,
  shape: Shape,
): RowItem<Row>[] {
  const height_px = shape === 'cards' ? CARD_PX : ROW_PX
  const items: RowItem<Row>[] = []
  let open: string | null = null
  for (const [index, row] of rows.entries()) {
    const group = groupOf?.(row) ?? null
    if (groupOf !== null && group !== null && group !== open) {
      const its = rows.filter((one) => groupOf(one) === group)
      items.push({ row: null, number: 0, group, rows: its, height_px: GROUP_PX })
      open = group
    }
    items.push({ row, number: index + 1, group: '', rows: [], height_px })
  }
  return items
}

const WHOLE_FROM_PX = 960
const REDUCED_FROM_PX = 560
const ROW_PX = 44
const CARD_PX = 64
const GROUP_PX = 24
