/** Places of nodes and courses of edges: dagre orders parents and columns of sites, arithmetic does the rest. */
import { Graph, layout } from '@dagrejs/dagre'

import { courseOf, type Point } from './course'
import type { Shown, ShownNode } from './folding'
import { groupedBy, type NetEdge } from './graph/model'
import { labelOf } from './nodewords'

export interface Box {
  x: number
  y: number
  height: number
}

export interface Drawn {
  edge: NetEdge
  path: string
  /** The right end of the label, before the node to which the edge leads. */
  label: Point
}

export interface Layout {
  width: number
  height: number
  boxes: ReadonlyMap<string, Box>
  edges: readonly Drawn[]
}

export const NODE_WIDTH = 164
export const LEAST_GAP = 120
const GAP_STEP = 24
const LABEL_MARGIN = 20
/** The mean width of a letter of a caption. */
const LETTER = 6
const MOST_GAP = 240
const MARGIN = 8
const ROW = 48
const ROW_GAP = 8
const LABEL_ROW = 16
/** Between edges of different transports that leave one node. */
const LANE = 7
/** With more pairs than these the order of columns follows the tree alone: dagre's time grows with the pairs. */
const PAIRS_ORDERED = 150

/** The gap between columns with which they fill a width, as far as their labels have room. */
export function gapFor(width: number, shown: Shown): number {
  const columns = new Set(shown.items.map(({ node }) => node.layer)).size
  const room = (width - 2 * MARGIN - columns * NODE_WIDTH) / Math.max(columns - 1, 1)
  return Math.max(leastGap(shown), Math.min(Math.floor(room), MOST_GAP))
}

/** Room for the longest label, in steps: another digit of a rate moves nothing. */
function leastGap({ edges }: Shown): number {
  const longest = Math.max(0, ...edges.map((edge) => labelOf(edge).length))
  return Math.max(LEAST_GAP, Math.ceil((longest * LETTER + LABEL_MARGIN) / GAP_STEP) * GAP_STEP)
}

/** Equal for two views that have the same places, so that new figures alone lay nothing out again. */
export function shapeOf({ items, mores, edges }: Shown): string {
  return JSON.stringify([
    items.map(({ node }) => [node.id, node.parent, node.layer]),
    mores.map(({ id, parent }) => [id, parent]),
    edges.map(({ from, to, way }) => [from, to, way]),
  ])
}

export function layoutOf(shown: Shown, gap: number): Layout {
  const sketch = sketchOf(shown)
  const graph = placed(shown, sketch, gap)
  const boxes = boxesOf(sketch, graph)
  const { width = 0, height = 0 } = graph.graph()
  return { width, height, boxes, edges: drawn(shown, { boxes, sketch, graph }) }
}

/** Sites of one parent are one block for dagre: five hundred sites are as many nodes as their parents. */
interface Sketch {
  /** By block, its rows from the top. */
  blocks: Map<string, Row[]>
  blockOf: Map<string, string>
  layers: Map<string, number>
}

interface Row {
  id: string
  height: number
}

function sketchOf({ items, mores, edges }: Shown): Sketch {
  const sketch: Sketch = { blocks: new Map(), blockOf: new Map(), layers: new Map() }
  const incoming = new Map<string, number>()
  for (const { to } of edges) incoming.set(to, (incoming.get(to) ?? 0) + 1)
  for (const item of items) putRow(sketch, blockFor(item), item.node, incoming.get(item.node.id) ?? 0)
  for (const more of mores) putRow(sketch, `sites ${more.parent}`, { id: more.id, layer: siteLayer(items) }, 0)
  return sketch
}

function blockFor({ node }: ShownNode): string {
  return node.kind === 'site' ? `sites ${node.parent}` : node.id
}

function siteLayer(items: readonly ShownNode[]): number {
  return items.find(({ node }) => node.kind === 'site')?.node.layer ?? 0
}

function putRow(sketch: Sketch, block: string, { id, layer }: { id: string; layer: number }, incoming: number): void {
  const rows = sketch.blocks.get(block) ?? []
  rows.push({ id, height: Math.max(ROW, incoming * LABEL_ROW + ROW_GAP) })
  sketch.blocks.set(block, rows)
  sketch.blockOf.set(id, block)
  sketch.layers.set(block, layer)
}

function placed({ items, mores, edges }: Shown, sketch: Sketch, gap: number): Graph {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'LR', nodesep: 24, edgesep: 16, ranksep: gap, marginx: MARGIN, marginy: MARGIN })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const [id, rows] of sketch.blocks) graph.setNode(id, { width: NODE_WIDTH, height: heightOf(rows) })
  for (const { node } of items) if (node.parent !== null) link(graph, sketch, node.parent, node.id)
  for (const more of mores) link(graph, sketch, more.parent, more.id)
  const pairs = new Map(edges.map((edge) => [pairOf(sketch, edge), edge]))
  for (const { from, to } of edges) {
    if (pairs.size <= PAIRS_ORDERED || !to.startsWith('site~')) link(graph, sketch, from, to)
  }
  layout(graph)
  return graph
}

/** An edge is as long as its ends are columns apart; one that leads back has no part in the order. */
function link(graph: Graph, sketch: Sketch, from: string, to: string): void {
  const [start, end] = [sketch.blockOf.get(from), sketch.blockOf.get(to)]
  if (start === undefined || end === undefined) return
  const minlen = (sketch.layers.get(end) ?? 0) - (sketch.layers.get(start) ?? 0)
  if (minlen > 0 && !graph.hasEdge(start, end)) graph.setEdge(start, end, { minlen })
}

function pairOf(sketch: Sketch, { from, to }: NetEdge): string {
  return `${sketch.blockOf.get(from)} ${sketch.blockOf.get(to)}`
}

function heightOf(rows: readonly Row[]): number {
  return rows.reduce((sum, { height }) => sum + height + ROW_GAP, -ROW_GAP)
}

function boxesOf(sketch: Sketch, graph: Graph): Map<string, Box> {
  const boxes = new Map<string, Box>()
  for (const [block, rows] of sketch.blocks) {
    const { x = 0, y = 0 } = graph.node(block) as Partial<Point>
    let top = y - heightOf(rows) / 2
    for (const { id, height } of rows) {
      boxes.set(id, { x: x - NODE_WIDTH / 2, y: top, height })
      top += height + ROW_GAP
    }
  }
  return boxes
}

interface Places {
  boxes: ReadonlyMap<string, Box>
  sketch: Sketch
  graph: Graph
}

/** The edges of one node enter it below each other, each with its label before its end. */
function drawn({ edges }: Shown, { boxes, sketch, graph }: Places): Drawn[] {
  const entering = groupedBy(edges, ({ to }) => to)
  const lanes = lanesOf(edges)
  const middle = (id: string) => (boxes.get(id)?.y ?? 0) + (boxes.get(id)?.height ?? 0) / 2
  return [...entering].flatMap(([to, all]) => {
    const target = boxes.get(to)
    if (target === undefined) return []
    const inOrder = all.toSorted((one, other) => middle(one.from) - middle(other.from))
    return inOrder.flatMap((edge, at) => {
      const source = boxes.get(edge.from)
      if (source === undefined) return []
      const end = { x: target.x, y: middle(to) + (at - (all.length - 1) / 2) * LABEL_ROW }
      const aside = lanes(edge) * LANE
      const start = { x: source.x + NODE_WIDTH, y: middle(edge.from) + aside }
      const passages = columnsBetween(start, end, routeOf(edge, sketch, graph), boxes)
      const path = courseOf(start, end, passages.map((passage) => ({ ...passage, y: passage.y + aside })))
      return [{ edge, path, label: { x: end.x - LABEL_MARGIN / 2, y: end.y - 3 } }]
    })
  })
}

/** The lane of an edge beside the others that leave its node: one for each transport, the middle one is 0. */
function lanesOf(edges: readonly NetEdge[]): (edge: NetEdge) => number {
  const leaving = groupedBy(edges, ({ from }) => from)
  const ways = new Map([...leaving].map(([from, all]) => [from, [...new Set(all.map(({ way }) => way))].toSorted()]))
  return ({ from, way }) => {
    const all = ways.get(from) ?? []
    return all.indexOf(way) - (all.length - 1) / 2
  }
}

function routeOf({ from, to }: NetEdge, sketch: Sketch, graph: Graph): readonly Point[] {
  const [start, end] = [sketch.blockOf.get(from) ?? '', sketch.blockOf.get(to) ?? '']
  if (!graph.hasEdge(start, end)) return []
  return (graph.edge(start, end) as { points?: Point[] }).points ?? []
}

/** Where an edge passes the columns between its ends, as dagre left room for it there. */
function columnsBetween(
  start: Point,
  end: Point,
  route: readonly Point[],
  boxes: ReadonlyMap<string, Box>,
): { left: number; right: number; y: number }[] {
  const lefts = new Set([...boxes.values()].map(({ x }) => x).filter((x) => x > start.x && x < end.x - NODE_WIDTH))
  return [...lefts]
    .toSorted((one, other) => one - other)
    .flatMap((left) => {
      const y = heightAt(route, left + NODE_WIDTH / 2)
      return y === null ? [] : [{ left, right: left + NODE_WIDTH, y }]
    })
}

function heightAt(route: readonly Point[], x: number): number | null {
  for (let at = 1; at < route.length; at += 1) {
    const [before, after] = [route[at - 1], route[at]]
    if (before === undefined || after === undefined || x < before.x || x > after.x) continue
    return before.y + ((after.y - before.y) * (x - before.x)) / Math.max(after.x - before.x, 1)
  }
  return null
}

