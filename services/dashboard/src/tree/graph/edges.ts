/** Edges as they are collected: one for each pair of nodes and each transport, with all feeds that it carries. */
import type { NetEdge, Way } from './model'
import type { Ends } from './measuredrates'

export interface Carried {
  feeds: readonly string[]
  circuits?: readonly number[]
  isLive: boolean
}

interface Collected {
  from: string
  to: string
  way: Way
  feeds: Set<string>
  circuits: Set<number>
  isLive: boolean
}

export class Edges {
  private readonly found = new Map<string, Collected>()

  add(from: string, to: string, way: Way, { feeds, circuits = [], isLive }: Carried): void {
    const key = `${from} ${to} ${way}`
    const edge = this.found.get(key) ?? { from, to, way, feeds: new Set(), circuits: new Set(), isLive: false }
    for (const feed of feeds) edge.feeds.add(feed)
    for (const circuit of circuits) edge.circuits.add(circuit)
    edge.isLive ||= isLive
    this.found.set(key, edge)
  }

  /** Whether an edge leads to the node. */
  has(to: string): boolean {
    return [...this.found.values()].some((edge) => edge.to === to)
  }

  all(rateOf: (edge: Ends) => number | null): NetEdge[] {
    return [...this.found.values()].map((edge) => {
      const circuits = [...edge.circuits].toSorted((one, other) => one - other)
      const rate_bps = rateOf({ ...edge, circuits })
      return { ...edge, feeds: [...edge.feeds].toSorted(), circuits, rate_bps }
    })
  }
}
