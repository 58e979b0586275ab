/** What the page of one feed asks for, and columns for what is counted by powers of two. */

export type { Distribution, PathLatency as Row, Plan as PlanMade } from './api'

/** A column for each power of two from the first to the last, those that are empty included. */
export function powers(
  counts: { to: number; count: number }[],
  say: (value: number) => string,
): { title: string; count: number }[] {
  if (counts.length === 0) return []
  const byPower = new Map(counts.map((one) => [Math.round(Math.log2(one.to)), one.count]))
  const [first, last] = [Math.min(...byPower.keys()), Math.max(...byPower.keys())]
  return Array.from({ length: last - first + 1 }, (_, place) => ({
    title: `up to ${say(2 ** (first + place))}`,
    count: byPower.get(first + place) ?? 0,
  }))
}

/** The name of a leg in a list: its number, or that of the leg beside which sites caught up by one stream. */
export function legName(leg: number): string {
  return leg < FIRST_CATCH_UP ? String(leg) : `catch-up beside ${leg - FIRST_CATCH_UP}`
}

/** Streams have the number of their leg plus this one. */
const FIRST_CATCH_UP = 2 ** 30
