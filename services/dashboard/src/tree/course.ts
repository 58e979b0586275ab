/** The line of an edge: curves between columns, straight where it passes one. */

export interface Point {
  x: number
  y: number
}

export interface Passage {
  left: number
  right: number
  y: number
}

export function courseOf(start: Point, end: Point, passages: readonly Passage[]): string {
  const parts = [`M${at(start)}`]
  let from = start
  for (const { left, right, y } of passages) {
    parts.push(curve(from, { x: left, y }), `H${rounded(right)}`)
    from = { x: right, y }
  }
  return [...parts, curve(from, end)].join('')
}

function curve(from: Point, to: Point): string {
  const bend = Math.max((to.x - from.x) / 2, LEAST_BEND)
  return `C${at({ x: from.x + bend, y: from.y })} ${at({ x: to.x - bend, y: to.y })} ${at(to)}`
}

function at({ x, y }: Point): string {
  return `${rounded(x)} ${rounded(y)}`
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}

const LEAST_BEND = 24
