/** Keys that move between rows. */

/** The row that a key leads to, counted from 0; null for other keys. `at` is -1 where no row has the focus. */
export function movedTo(key: string, at: number, count: number): number | null {
  if (count === 0) return null
  const wanted = STEPS[key]
  if (wanted !== undefined) return at < 0 ? 0 : within(at + wanted, count)
  if (key === 'Home') return 0
  return key === 'End' ? count - 1 : null
}

/** True for the letters, which work everywhere outside of fields; the others belong to what has the focus. */
export function isLetter(key: string): boolean {
  return key === 'j' || key === 'k'
}

function within(index: number, count: number): number {
  return Math.min(Math.max(index, 0), count - 1)
}

const STEPS: Record<string, number> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }
