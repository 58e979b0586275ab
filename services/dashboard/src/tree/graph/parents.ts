/** The place of each node in the tree: one parent, though a site may get its feeds from several nodes. */
import { HUB, type NetEdge } from './model'

export interface Places {
  parents: ReadonlyMap<string, string>
  /** The columns; sources have the first. */
  depths: ReadonlyMap<string, number>
}

/** The parent of a site is the node that brings most of its feeds, of equal ones the one that is next to it. */
export function parentsOf(edges: readonly NetEdge[]): Places {
  const { parents, depths } = carriersOf(edges.filter(({ to }) => !to.startsWith('site~')))
  const feeds = new Map<string, Map<string, number>>()
  for (const { from, to, feeds: carried } of edges) {
    if (!to.startsWith('site~')) continue
    const counts = feeds.get(to) ?? new Map<string, number>()
    counts.set(from, (counts.get(from) ?? 0) + carried.length)
    feeds.set(to, counts)
  }
  for (const [site, counts] of feeds) {
    const ranked = [...counts].toSorted(
      ([one, ones], [other, others]) =>
        others - ones || (depths.get(other) ?? 0) - (depths.get(one) ?? 0) || one.localeCompare(other),
    )
    parents.set(site, ranked[0]?.[0] ?? HUB)
  }
  return { parents, depths }
}

/** Relays and groups, from the hub outwards: the first way that reaches one counts, so no circle can come out. */
function carriersOf(edges: readonly NetEdge[]): { parents: Map<string, string>; depths: Map<string, number> } {
  const parents = new Map<string, string>()
  const depths = new Map([[HUB, 1]])
  const onward = new Map<string, string[]>()
  for (const { from, to } of edges) {
    if (to === HUB) depths.set(from, 0)
    else onward.set(from, [...(onward.get(from) ?? []), to])
  }
  const waiting = [HUB]
  for (let from = waiting.shift(); from !== undefined; from = waiting.shift()) {
    for (const to of onward.get(from) ?? []) {
      if (depths.has(to)) continue
      parents.set(to, from)
      depths.set(to, (depths.get(from) ?? 1) + 1)
      waiting.push(to)
    }
  }
  return { parents, depths }
}
