import { expect, test } from 'vitest'
import { courseOf } from './course'
import { opened, shownOf, type Shown } from './folding'
import { gapFor, layoutOf, LEAST_GAP, NODE_WIDTH, shapeOf, type Layout } from './drawing'
import { networkOf } from './graph/network'
import { feedOf, large, legOf, overviewOf, siteOf, sourcesOf, takes } from './graph/samples'
import { moveOf, standingsOf } from './walk'

const MIXED = sourcesOf(
  {
    upstreams: [{ upstream: 'national', connected: true, feeds: [] }],
    relays: [{ relay: 'campus', connected: true, sites: [] }],
    sites: [
      siteOf('a', { via: ['campus'] }),
      siteOf('b', { via: ['campus'] }),
      siteOf('c'),
      siteOf('d', { feeds: [takes('WARN', 'multicast'), takes('NGRID'), takes('SAT', 'static-circuit')] }),
    ],
  },
  { overview: overviewOf({ feeds: [feedOf('WARN', legOf(1, 'multicast', ['d'], { group: '239.0.0.1' }))] }) },
)

function drawn(): { shown: Shown; layout: Layout } {
  const shown = shownOf(networkOf(MIXED), new Map(), null)
  return { shown, layout: layoutOf(shown, 150) }
}

function overlaps({ boxes }: Layout): string[] {
  const all = [...boxes]
  return all.flatMap(([id, box], at) =>
    all
      .slice(at + 1)
      .filter(([, other]) => box.x === other.x && box.y < other.y + other.height && other.y < box.y + box.height)
      .map(([other]) => `${id} ${other}`),
  )
}

test('columns stand from left to right by layer, sites in the last one, and no node covers another', () => {
  const { shown, layout } = drawn()
  const columns = [...new Set([...layout.boxes.values()].map(({ x }) => x))].toSorted((one, other) => one - other)
  expect(columns).toHaveLength(4)
  for (const { node } of shown.items) expect(columns.indexOf(layout.boxes.get(node.id)?.x ?? -1)).toBe(node.layer)
  expect(overlaps(layout)).toEqual([])
  const right = Math.max(...[...layout.boxes.values()].map(({ x }) => x + NODE_WIDTH))
  const bottom = Math.max(...[...layout.boxes.values()].map(({ y, height }) => y + height))
  expect(right).toBeLessThanOrEqual(layout.width)
  expect(bottom).toBeLessThanOrEqual(layout.height)
})

test('labels of edges that enter one node stand below each other, and the node has room for them', () => {
  const { layout } = drawn()
  const labels = layout.edges.filter(({ edge }) => edge.to === 'site~d').map(({ label }) => label.y)
  expect(labels).toHaveLength(3)
  expect(labels[1]).toBe((labels[0] ?? 0) + 16)
  expect(layout.boxes.get('site~d')?.height).toBeGreaterThanOrEqual(56)
})

test('an edge passes a column between its ends beside the nodes that stand there', () => {
  const { layout } = drawn()
  const passing = layout.edges.find(({ edge }) => edge.from === 'hub' && edge.to === 'site~c')
  const campus = layout.boxes.get('relay~campus')
  const y = Number(/C\S+ \S+ \S+ \S+ \S+ (\S+?)H/.exec(passing?.path ?? '')?.[1])
  expect(y < (campus?.y ?? 0) || y > (campus?.y ?? 0) + (campus?.height ?? 0)).toBe(true)
  expect(courseOf({ x: 0, y: 0 }, { x: 100, y: 40 }, [])).toBe('M0 0C50 0 50 40 100 40')
})

test('new figures do not change the shape, another node does', () => {
  const before = shapeOf(drawn().shown)
  expect(shapeOf(drawn().shown)).toBe(before)
  const more = sourcesOf({ ...MIXED.tree, sites: [...MIXED.tree.sites, siteOf('e')] }, { overview: MIXED.overview })
  expect(shapeOf(shownOf(networkOf(more), new Map(), null))).not.toBe(before)
})

test('columns fill the width, and never come closer than their labels are long', () => {
  const { shown } = drawn()
  expect(gapFor(300, shown)).toBe(LEAST_GAP)
  expect(gapFor(4 * NODE_WIDTH + 3 * 200 + 16, shown)).toBe(200)
  expect(gapFor(10_000, shown)).toBe(240)
  const edges = shown.edges.map((edge) => ({ ...edge, way: 'multicast' as const, circuits: [1234] }))
  expect(gapFor(300, { ...shown, edges })).toBe(192)
})

test('500 sites with 30 feeds are joined, folded and laid out within a task', () => {
  const sources = large(500, 30)
  const network = networkOf(sources)
  const open = opened(network, new Map(), 'direct', true)
  // Processor time, and the best of three: other processes of the machine do not count.
  const times_ms = [1, 2, 3].map(() => {
    const begun = process.cpuUsage()
    layoutOf(shownOf(networkOf(sources), open, null), 150)
    return process.cpuUsage(begun).user / 1000
  })
  expect(Math.min(...times_ms)).toBeLessThan(200)
  const layout = layoutOf(shownOf(network, open, null), 150)
  expect(overlaps(layout)).toEqual([])
})

test('arrows move along edges and in columns, and fold and open as in a tree', () => {
  const { shown, layout } = drawn()
  const move = (key: string, from: string) => moveOf(key, from, shown, layout.boxes)
  expect(move('ArrowRight', 'source~national')).toEqual({ kind: 'focus', id: 'hub' })
  expect(move('ArrowLeft', 'hub')).toEqual({ kind: 'focus', id: 'source~national' })
  expect(move('ArrowRight', 'relay~campus')).toEqual({ kind: 'focus', id: 'site~a' })
  expect(move('ArrowLeft', 'site~b')).toEqual({ kind: 'focus', id: 'relay~campus' })
  expect(move('ArrowLeft', 'relay~campus')).toEqual({ kind: 'fold', id: 'relay~campus' })
  expect(move('ArrowDown', 'site~a')).toEqual({ kind: 'focus', id: 'site~b' })
  expect(move('ArrowUp', 'site~b')).toEqual({ kind: 'focus', id: 'site~a' })
  expect(move('ArrowUp', 'hub')).toBeNull()
  expect(move('ArrowRight', 'site~a')).toBeNull()
  expect(move('a', 'site~a')).toBeNull()
  const column = ['a', 'b', 'c', 'd'].map((name) => `site~${name}`)
  const byHeight = column.toSorted((one, other) => (layout.boxes.get(one)?.y ?? 0) - (layout.boxes.get(other)?.y ?? 0))
  expect(move('Home', 'site~b')).toEqual({ kind: 'focus', id: byHeight[0] })
  expect(move('End', 'site~b')).toEqual({ kind: 'focus', id: byHeight[3] })
})

test('a folded parent opens to the right, and so does the rest of its sites', () => {
  const network = networkOf(large(400, 1))
  const folded = shownOf(network, new Map(), null)
  expect(moveOf('ArrowRight', 'direct', folded, layoutOf(folded, 150).boxes)).toEqual({ kind: 'open', id: 'direct' })
  const open = shownOf(network, opened(network, new Map(), 'direct', true), null)
  const { boxes } = layoutOf(open, 150)
  expect(moveOf('ArrowRight', 'more~direct', open, boxes)).toEqual({ kind: 'open', id: 'more~direct' })
  expect(moveOf('ArrowLeft', 'more~direct', open, boxes)).toEqual({ kind: 'focus', id: 'direct' })
})

test('items beside each other in the document have their place in the tree', () => {
  const standings = standingsOf(drawn().shown)
  expect(standings.get('hub')).toEqual({ level: 1, position: 2, siblings: 2 })
  expect(standings.get('relay~campus')).toMatchObject({ level: 2, siblings: 4 })
  expect(standings.get('site~b')).toEqual({ level: 3, position: 2, siblings: 2 })
})
