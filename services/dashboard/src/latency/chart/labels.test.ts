import { expect, test } from 'vitest'

import { history, lineOf, point, spread } from '../../fixtures/latency'
import { extentOf, plotOf, type Plot } from '../curves'
import { viewOf } from '../linesview'
import { apart, endLabels } from './labels'
import { marginsOf, yOf, type Plane } from './plane'

const AT = (minute: number) => `2026-03-14T10:0${minute}:00Z`
const VIEW = viewOf(new URLSearchParams('feed=NGRID&site=unl.edu&minutes=5&before=week'), 'X')

function plotWith(...minutes: [number, number][]): Plot {
  const points = minutes.map(([minute, ms]) => point(AT(minute), ms))
  const before = history('2026-03-07T10:00:00Z', '2026-03-07T10:05:00Z', [point('2026-03-07T10:04:00Z', 395)])
  const answered = { line: lineOf('NGRID', 'unl.edu'), spread: spread([[158, 200, 30]], 5000) }
  return plotOf(VIEW, [{ ...answered, history: history(AT(0), AT(5), points), before }]) as Plot
}

function planeOf(plot: Plot, width = 1200): Plane {
  const range = { from_ms: plot.from_ms, to_ms: plot.to_ms, ...extentOf(plot, 'log') }
  return { width, height: 320, ...marginsOf(width), ...range, scale: 'log' }
}

test('labels that would overlap are moved apart, the others stay', () => {
  const bounds = { gap: 15, from: 10, to: 100 }
  expect(apart([50, 20, 90], bounds)).toEqual([50, 20, 90])
  expect(apart([50, 52, 51], bounds)).toEqual([50, 80, 65])
  expect(apart([99, 98], bounds)).toEqual([100, 85])
  expect(apart([3], bounds)).toEqual([10])
  expect(apart([], bounds)).toEqual([])
})

test('the week before has the name of its line, and stands apart from it', () => {
  const plot = plotWith([3, 410], [4, 400])
  const plane = planeOf(plot)
  const [line, before, objective] = endLabels(plot, plane)
  expect([line?.text, before?.text, objective?.text]).toEqual([
    'unl.edu 400 ms',
    'unl.edu week before 395 ms',
    'objective 5.00 s',
  ])
  expect([line?.isStrong, before?.isStrong, before?.token]).toEqual([true, false, line?.token])
  expect((before?.y ?? 0) - (line?.y ?? 0)).toBe(15)
  expect(objective?.y).toBe(yOf(plane, 5000))
})

test('a line that ended earlier has no figure', () => {
  const plot = plotWith([1, 400])
  expect(endLabels(plot, planeOf(plot))[0]?.text).toBe('unl.edu')
})

test('a long name is cut, and the figure stays', () => {
  const plot = plotWith([4, 400])
  const name = 'a.very.long.name.of.a.site.example.edu'
  const [line, before] = endLabels({ ...plot, curves: plot.curves.map((curve) => ({ ...curve, name })) }, planeOf(plot))
  expect([line?.text, before?.text]).toEqual(['a.very.long.name.o… 400 ms', 'a.very… week before 395 ms'])
})

test('a narrow drawing has no labels', () => {
  const plot = plotWith([4, 400])
  expect(endLabels(plot, planeOf(plot, 390))).toEqual([])
})
