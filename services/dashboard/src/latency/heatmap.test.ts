import { expect, test } from 'vitest'

import type { Heat, HeatCell } from '../api'
import { heatCellWords, heatQuestion, heatRowWords, heatTicks } from './heatmap'
import { viewOf } from './linesview'

const WITHIN: HeatCell = { state: 'within', share: 0.2, p99_ms: 1000, products: 1204 }
const LATE: HeatCell = { state: 'late', share: 1.5, p99_ms: 7500, products: 7 }
const SILENT: HeatCell = { state: 'no-report', share: null, p99_ms: null, products: 0 }

function heat(steps: number, step_minutes = 60, begin = '2026-03-13T19:00:00Z'): Heat {
  const at = (step: number) => new Date(Date.parse(begin) + step * step_minutes * 60_000).toISOString()
  return { step_minutes, steps: Array.from({ length: steps }, (_, step) => at(step)), rows: [], others: 0 }
}

test('the question has the range of the view', () => {
  const view = viewOf(new URLSearchParams('feed=NGRID&from=2026-03-14T10:00:00Z&to=2026-03-14T12:00:00Z'), 'X')
  expect(heatQuestion(view, 'NGRID', 'unl.edu', 12)).toBe(
    'feed=NGRID&minutes=120&limit=12&site=unl.edu&until=2026-03-14T12%3A00%3A00Z',
  )
})

test('a day has a tick every third hour, a week one for each day', () => {
  const ticks = heatTicks(heat(24), 'utc', 10)
  expect(ticks.map((one) => one.text)).toEqual(['21:00', 'Sat 14', '03:00', '06:00', '09:00', '12:00', '15:00'])
  expect(ticks.filter((one) => one.isDay).map((one) => one.column)).toEqual([5])
  expect(heatTicks(heat(24), 'utc', 4).map((one) => one.text)).toEqual(['Sat 14', '06:00', '12:00'])
  expect(heatTicks(heat(168), 'utc', 10).every((one) => one.isDay)).toBe(true)
  expect(heatTicks(heat(30, 1440, '2026-03-01T00:00:00Z'), 'utc', 10).length).toBeGreaterThan(3)
})

test('a cell names its state and its figures; few products have a worst one instead of a p99', () => {
  const at = '2026-03-14T10:00:00Z'
  expect(heatCellWords(WITHIN, at, 'utc')).toBe(
    '2026-03-14 10:00: within the objective, p99 1.00 s, 20 % of the objective, 1204 products',
  )
  expect(heatCellWords(LATE, at, 'utc')).toContain('late, worst 7.50 s, 150 % of the objective')
  expect(heatCellWords(SILENT, at, 'utc')).toBe('2026-03-14 10:00: no report')
})

test('a row names its worst hour, and the hours that are no latency', () => {
  const row = { site: 'unl.edu', objective_ms: 5000, cells: [WITHIN, LATE, SILENT] }
  expect(heatRowWords(row, 60)).toBe('highest p99 7.50 s, objective 5.00 s, 1 late, 1 no report, of 3 hours')
  expect(heatRowWords({ ...row, cells: [SILENT] }, 1440)).toBe(
    'no latency reported, objective 5.00 s, 1 no report, of 1 days',
  )
})
