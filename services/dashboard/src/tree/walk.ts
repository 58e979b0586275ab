/** Moves by arrow keys: along edges to the left and right, within a column up and down, as in an ARIA tree. */
import type { Shown } from './folding'
import type { Box } from './drawing'

export type Move = { kind: 'focus'; id: string } | { kind: 'open' | 'fold'; id: string }

export function moveOf(key: string, from: string, shown: Shown, boxes: ReadonlyMap<string, Box>): Move | null {
  const walk = new Walk(shown, boxes)
  const to = { ArrowUp: walk.beside(from, -1), ArrowDown: walk.beside(from, 1) }[key]
  if (to !== undefined) return focusOn(to)
  if (key === 'ArrowRight') return walk.right(from)
  if (key === 'ArrowLeft') return walk.left(from)
  if (key === 'Home') return focusOn(walk.column(from)[0] ?? null)
  return key === 'End' ? focusOn(walk.column(from).at(-1) ?? null) : null
}

export interface Standing {
  level: number
  position: number
  siblings: number
}

/** The place of each item in the tree, which its elements beside each other do not show. */
export function standingsOf({ items, mores }: Shown): Map<string, Standing> {
  const all = [
    ...items.map(({ node }) => ({ id: node.id, parent: node.parent })),
    ...mores.map(({ id, parent }) => ({ id, parent })),
  ]
  const counts = new Map<string | null, number>()
  for (const { parent } of all) counts.set(parent, (counts.get(parent) ?? 0) + 1)
  const seen = new Map<string | null, number>()
  const standings = new Map<string, Standing>()
  for (const { id, parent } of all) {
    const position = (seen.get(parent) ?? 0) + 1
    seen.set(parent, position)
    const level = parent === null ? 1 : (standings.get(parent)?.level ?? 1) + 1
    standings.set(id, { level, position, siblings: counts.get(parent) ?? 1 })
  }
  return standings
}

class Walk {
  constructor(
    private readonly shown: Shown,
    private readonly boxes: ReadonlyMap<string, Box>,
  ) {}

  beside(id: string, by: number): string | null {
    const column = this.column(id)
    return column[column.indexOf(id) + by] ?? null
  }

  column(id: string): string[] {
    const x = this.boxes.get(id)?.x
    return this.downwards([...this.boxes.keys()].filter((one) => this.boxes.get(one)?.x === x))
  }

  /** Opens what is folded; otherwise goes to the first node that gets something from here. */
  right(id: string): Move | null {
    const isMore = this.shown.mores.some((more) => more.id === id)
    if (isMore || this.isOpen(id) === false) return { kind: 'open', id }
    const onward = this.shown.edges.filter(({ from }) => from === id).map(({ to }) => to)
    return focusOn(this.downwards(onward)[0] ?? null)
  }

  /** Folds what is open; otherwise goes to the parent, and from a root to the first node that feeds it. */
  left(id: string): Move | null {
    if (this.isOpen(id)) return { kind: 'fold', id }
    const parent = this.parentOf(id)
    if (parent !== null) return focusOn(parent)
    const feeding = this.shown.edges.filter(({ to }) => to === id).map(({ from }) => from)
    return focusOn(this.downwards(feeding)[0] ?? null)
  }

  private isOpen(id: string): boolean | null {
    return this.shown.items.find(({ node }) => node.id === id)?.isOpen ?? null
  }

  private parentOf(id: string): string | null {
    const more = this.shown.mores.find((one) => one.id === id)
    return more?.parent ?? this.shown.items.find(({ node }) => node.id === id)?.node.parent ?? null
  }

  private downwards(ids: readonly string[]): string[] {
    const top = (id: string) => this.boxes.get(id)?.y ?? 0
    return ids.toSorted((one, other) => top(one) - top(other))
  }
}

function focusOn(id: string | null): Move | null {
  return id === null ? null : { kind: 'focus', id }
}
