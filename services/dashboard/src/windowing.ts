/** Long lists in lots: only those near the screen have rows, the others keep their height. */

export interface Lot<Row> {
  number: number
  rows: Row[]
}

/** The rows in lots of a size; the last is what is left. A list that is short is one lot. */
export function lots<Row>(rows: Row[], size: number = rows.length > ROWS_SHORT ? ROWS_A_LOT : ROWS_SHORT): Lot<Row>[] {
  const count = Math.ceil(rows.length / size)
  return Array.from({ length: count }, (_, number) => ({
    number,
    rows: rows.slice(number * size, (number + 1) * size),
  }))
}

// What a browser renders in no time, and finds on the page when people search.
export const ROWS_SHORT = 60
const ROWS_A_LOT = 20
