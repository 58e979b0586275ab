import { expect, test } from 'vitest'

import { history, lineOf, spread } from '../fixtures/latency'
import { plotOf, type LineCurve } from './curves'
import { viewOf } from './linesview'
import { spreadOf, spreadRows, spreadWords } from './spread'

const VIEW = viewOf(new URLSearchParams('feed=NGRID&site=unl.edu&with=NGRID@snu.ac.kr'), 'X')

function curves(unl: [number, number, number][], snu: [number, number, number][]): LineCurve[] {
  const answered = (site: string, bins: [number, number, number][]) => ({
    line: lineOf('NGRID', site),
    history: history('2026-03-14T10:00:00Z', '2026-03-14T10:05:00Z', [], 1000),
    spread: spread(bins, 1000),
    before: null,
  })
  return plotOf(VIEW, [answered('unl.edu', unl), answered('snu.ac.kr', snu)])?.curves ?? []
}

const BOTH = curves([[100, 126, 3], [126, 158, 1]], [[1260, 1580, 5]])

test('bars of several lines lie beside each other in their bin, as shares of their own products', () => {
  const plot = spreadOf(BOTH, 400, 236)
  expect(plot?.bars).toHaveLength(3)
  const [first, second, other] = plot?.bars ?? []
  expect(first?.height).toBeCloseTo((second?.height ?? 0) * 3)
  expect(other?.height).toBeCloseTo((plot?.box.bottom ?? 0) - (plot?.box.top ?? 0))
  expect(first?.x).toBeLessThan(second?.x ?? 0)
  expect(first?.words).toBe('unl.edu: 3 products from 100 ms to 126 ms')
})

test('the axis has whole decades and holds the objective, which is marked once', () => {
  const plot = spreadOf(BOTH, 400, 236)
  expect(plot?.decades.map((one) => one.text)).toEqual(['100 ms', '1 s', '10 s'])
  expect(plot?.objectives.map((one) => one.words)).toEqual(['objective 1.00 s'])
  expect(plot?.objectives[0]?.x).toBeCloseTo(plot?.decades[1]?.x ?? 0)
  expect(plot?.shares.map((one) => one.text)).toEqual(['0 %', '25 %', '50 %', '75 %', '100 %'])
})

test('without products there is nothing to draw, and the words say so', () => {
  expect(spreadOf(curves([], []), 400, 236)).toBeNull()
  expect(spreadWords(curves([], []))).toBe('unl.edu: no products; snu.ac.kr: no products')
})

test('words and table have the same figures', () => {
  expect(spreadWords(BOTH)).toBe(
    'unl.edu: most of 4 products from 100 ms to 126 ms, 0 above the objective; ' +
      'snu.ac.kr: most of 5 products from 1.26 s to 1.58 s, 5 above the objective',
  )
  expect(spreadRows(BOTH)).toEqual([
    { title: '100 ms to 126 ms', counts: [3, 0] },
    { title: '126 ms to 158 ms', counts: [1, 0] },
    { title: '1.26 s to 1.58 s', counts: [0, 5] },
  ])
})
