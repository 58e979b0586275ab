/** Sites that are drawn as one mark, because their own marks would cover each other. */
import type { Point } from './projection'
import { isBad, rankOf, type MapState, type PlacedSite } from './sites'

/** Up to this many sites in view have a mark each, unless they share a place. */
export const SINGLE_SITES = 50

export interface Located {
  site: PlacedSite
  /** In the drawing of the whole world. */
  point: Point
}

export interface Cluster {
  /** At least one, in the order given. */
  members: Located[]
  /** The mean of its members. */
  point: Point
}

/**
 * Groups points by distance. A point joins the nearest cluster that began within `radius` of it, or begins one; so the
 * groups depend on the order of the points, not on the part of the world that is shown.
 */
export function clustersOf(points: readonly Located[], radius: number): Cluster[] {
  const found: Located[][] = []
  const grid = new Map<string, Located[][]>()
  for (const one of points) {
    const near = nearest(around(grid, one.point, radius), one.point, radius)
    if (near !== null) {
      near.push(one)
      continue
    }
    const begun = [one]
    found.push(begun)
    const key = keyOf(cell(one.point.x, radius), cell(one.point.y, radius))
    grid.set(key, [...(grid.get(key) ?? []), begun])
  }
  return found.map((members) => ({ members, point: mean(members.map((one) => one.point)) }))
}

/**
 * The distance within which sites share a mark, in units of the drawing. `unit_px` is the width of such a unit on the
 * screen before enlarging, `k` how often it is enlarged.
 */
export function radiusFor(inView: number, unit_px: number, k: number): number {
  const apart_px = inView > SINGLE_SITES ? CLUSTER_PX : SAME_PLACE_PX
  return apart_px / Math.max(unit_px, LEAST_UNIT_PX) / k
}

/** The shares of its sites that are down or late, and that are within their objectives; the rest is neither. */
export function sharesOf({ members }: Cluster): { bad: number; within: number } {
  const share = (has: (state: MapState) => boolean) =>
    members.filter((one) => has(one.site.state)).length / Math.max(members.length, 1)
  return { bad: share(isBad), within: share((state) => state === 'within') }
}

export function worstOf({ members }: Cluster): MapState {
  return members.reduce<MapState>(
    (worst, { site }) => (rankOf(site.state) < rankOf(worst) ? site.state : worst),
    members[0]?.site.state ?? 'never',
  )
}

/** The words of its button: `12 sites, 1 down, 2 late`. */
export function clusterWords({ members }: Cluster): string {
  const count = (state: MapState) => members.filter((one) => one.site.state === state).length
  const bad = (['down', 'late'] as const).filter((state) => count(state) > 0)
  return [`${members.length} sites`, ...bad.map((state) => `${count(state)} ${state}`)].join(', ')
}

function around(grid: ReadonlyMap<string, Located[][]>, point: Point, radius: number): Located[][] {
  const [column, row] = [cell(point.x, radius), cell(point.y, radius)]
  return NEIGHBOURS.flatMap(([right, down]) => grid.get(keyOf(column + right, row + down)) ?? [])
}

function nearest(clusters: readonly Located[][], to: Point, radius: number): Located[] | null {
  let [found, least]: [Located[] | null, number] = [null, radius]
  for (const cluster of clusters) {
    const away = cluster[0] === undefined ? Infinity : distance(cluster[0].point, to)
    if (away <= least) [found, least] = [cluster, away]
  }
  return found
}

function mean(points: readonly Point[]): Point {
  const sum = points.reduce((one, other) => ({ x: one.x + other.x, y: one.y + other.y }), { x: 0, y: 0 })
  return { x: sum.x / points.length, y: sum.y / points.length }
}

function distance(one: Point, other: Point): number {
  return Math.hypot(one.x - other.x, one.y - other.y)
}

function cell(value: number, radius: number): number {
  return Math.floor(value / radius)
}

function keyOf(column: number, row: number): string {
  return `${column} ${row}`
}

const NEIGHBOURS = [-1, 0, 1].flatMap((right) => [-1, 0, 1].map((down): [number, number] => [right, down]))
/** A ring with some room around it, and the distance below which two marks cover each other. */
const CLUSTER_PX = 48
const SAME_PLACE_PX = 4
const LEAST_UNIT_PX = 0.05
