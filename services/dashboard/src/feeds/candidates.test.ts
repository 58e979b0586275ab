import { expect, test } from 'vitest'

import { recorded } from '../fixtures/recorded'
import type { Candidate, Feed } from '../overview'
import { candidatesDrawn, egressOf, PLOT } from './candidates'

const first = recorded().feeds[0] as Feed

function candidate(transport: string, egress_bps: number | null, predicted_p99_ms: number | null, feasible = true) {
  return { transport, feasible, reason: 'reason', egress_bps, predicted_p99_ms } as Candidate
}

function drawn(candidates: Candidate[], objective_ms = 2000) {
  const plan = { ...first.plan!, transport: 'multicast' as const, candidates }
  return candidatesDrawn({ ...first, objective_ms, plan })
}

const BOTH = [candidate('multicast', 20e6, 100), candidate('unicast', 100e6, 1000)]

test('candidates lie by egress and latency, and the chosen one is marked', () => {
  const points = new Map(drawn(BOTH)?.points.map((point) => [point.key, point]))
  const [group, copies] = [points.get('multicast')!, points.get('unicast')!]
  expect([group.kind, copies.kind]).toEqual(['chosen', 'possible'])
  expect(group.x).toBeLessThan(copies.x)
  expect(group.y).toBeGreaterThan(copies.y)
  expect(points.get('measured')).toMatchObject({ kind: 'measured', x: group.x })
  for (const { x, y } of points.values()) {
    expect(x).toBeGreaterThanOrEqual(PLOT.left)
    expect(x).toBeLessThanOrEqual(PLOT.right)
    expect(y).toBeGreaterThanOrEqual(PLOT.top)
    expect(y).toBeLessThanOrEqual(PLOT.bottom)
  }
})

test('axes have whole decades, and the objective is among them', () => {
  const chart = drawn(BOTH)
  expect(chart?.across.map((tick) => tick.label)).toEqual(['10 Mb/s', '100 Mb/s'])
  expect(chart?.up.map((tick) => tick.label)).toEqual(['10 ms', '100 ms', '1 s', '10 s'])
  expect(chart?.objective_y).toBeGreaterThan(PLOT.top)
  const one = drawn([candidate('multicast', 1e9, 10)], 10)
  expect(one?.across.map((tick) => tick.label)).toEqual(['1 Gb/s', '10 Gb/s'])
})

test('a candidate without a prediction has no place, and without any there is no chart', () => {
  const chart = drawn([...BOTH, candidate('static-circuit', null, null, false)])
  expect(chart?.points.map((point) => point.key).toSorted()).toEqual(['measured', 'multicast', 'unicast'])
  expect(drawn([candidate('multicast', null, null)])).toBeNull()
  expect(candidatesDrawn({ ...first, plan: null })).toBeNull()
})

test('labels at one place do not cover each other', () => {
  const chart = drawn([candidate('multicast', 20e6, 100), candidate('unicast', 20e6, 101), candidate('x', 20e6, 102)])
  const heights = chart!.points.map((point) => point.label_y).toSorted((a, b) => a - b)
  for (const [at, height] of heights.slice(1).entries()) expect(height - heights[at]!).toBeGreaterThanOrEqual(12)
})

test('egress in a table is in megabits', () => {
  expect(egressOf(candidate('unicast', 2.7e9, 1))).toBe('2700 Mb/s')
  expect(egressOf(candidate('unicast', null, 1))).toBe('–')
})
