/** Geometry of a sparkline: a value per step over a fixed range, oldest first; null where nothing was stored. */

export interface Spark {
  /** One path for each run without a gap. */
  lines: string[]
  areas: string[]
  last: { x: number; y: number } | null
  /** The height of the limit; null if there is none. */
  limit: number | null
}

interface Box {
  width: number
  height: number
  /** Kept free on all sides, for the mark of the last point. */
  margin: number
}

/** The scale starts at zero and includes the limit, so that a curve below it looks below it. */
export function sparkOf(values: readonly (number | null)[], box: Box, limit: number | null = null): Spark {
  const most = Math.max(...values.map((value) => value ?? 0), limit ?? 0)
  const step = (box.width - 2 * box.margin) / Math.max(values.length - 1, 1)
  const x = (index: number) => tenth(box.margin + index * step)
  const y = (value: number) => tenth(box.height - box.margin - share(value, most) * (box.height - 2 * box.margin))
  const runs = runsOf(values).map((run) => run.map(([index, value]) => ({ x: x(index), y: y(value) })))
  const lines = runs.map((run) => `M${run.map((point) => `${point.x} ${point.y}`).join('L')}`)
  const base = box.height - box.margin
  const areas = runs.map((run, at) => `${lines[at]}L${run.at(-1)?.x} ${base}L${run[0]?.x} ${base}Z`)
  return { lines, areas, last: runs.at(-1)?.at(-1) ?? null, limit: limit === null ? null : y(limit) }
}

function runsOf(values: readonly (number | null)[]): [number, number][][] {
  const runs: [number, number][][] = []
  let isOpen = false
  values.forEach((value, index) => {
    if (value === null) {
      isOpen = false
    } else if (isOpen) {
      runs.at(-1)?.push([index, value])
    } else {
      runs.push([[index, value]])
      isOpen = true
    }
  })
  return runs
}

function share(value: number, most: number): number {
  return most > 0 ? Math.min(Math.max(value / most, 0), 1) : 0
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10
}
