import { expect, test } from 'vitest'

import { history, lineOf, point, spread } from '../../fixtures/latency'
import { plotOf, type Answered, type Plot } from '../curves'
import { viewOf } from '../linesview'
import { lookOfPlace, TOKENS, type Palette } from './looks'
import { headHeight, optionsOf, tickOf, type Drawn } from './options'

const AT = (minute: number) => `2026-03-14T10:0${minute}:00Z`
const MS = (minute: number) => Date.parse(AT(minute))
const VIEW = viewOf(new URLSearchParams('feed=NGRID&site=unl.edu&minutes=5&before=week'), 'X')
const UNL: Answered = {
  line: lineOf('NGRID', 'unl.edu'),
  history: history(AT(0), AT(5), [point(AT(0), 200), point(AT(1), 300), point(AT(3), 400), point(AT(4), -1)]),
  spread: spread([[158, 200, 30]], 5000),
  before: history('2026-03-07T10:00:00Z', '2026-03-07T10:05:00Z', [point('2026-03-07T10:01:00Z', 90)]),
}
const PALETTE = Object.fromEntries(TOKENS.map((token) => [token, token])) as Palette

function drawn(changes: Partial<Drawn> = {}): Drawn {
  const plot = plotOf(VIEW, [UNL]) as Plot
  return { plot, scale: 'log', zone: 'utc', palette: PALETTE, width: 1200, height: 320, silent: [], ...changes }
}

/** The series by their names. */
function series(of: Drawn) {
  return new Map(optionsOf(of).series.map((one) => [one.name, one]))
}

test('the axis of time is the chosen range, in the chosen zone', () => {
  const { xAxis, useUTC } = optionsOf(drawn())
  expect([xAxis.min, xAxis.max, useUTC]).toEqual([MS(0), MS(5), true])
  expect(optionsOf(drawn({ zone: 'local' })).useUTC).toBe(false)
})

test('gaps stay gaps; lonely values and the last one have the mark of the line', () => {
  const line = series(drawn()).get('unl.edu')
  const mark = `path://${lookOfPlace(0).path}`
  expect(line?.data).toEqual([
    [MS(0), 200],
    [MS(1), 300],
    [MS(2), null],
    { value: [MS(3), 400], symbol: mark, symbolSize: 8 },
    [MS(4), null],
  ])
})

test('a value below zero is a flag at the edge of a log axis, and a value of a linear one', () => {
  expect(series(drawn()).get('unl.edu, clock')?.data.at(-1)).toEqual([MS(4), 10])
  const linear = series(drawn({ scale: 'linear' }))
  expect(linear.has('unl.edu, clock')).toBe(false)
  expect(linear.get('unl.edu')?.data.at(-1)).toMatchObject({ value: [MS(4), -1] })
})

test('the week before is dotted in the colour of its line', () => {
  const before = series(drawn()).get('unl.edu, week before')
  expect(before).toMatchObject({ lineStyle: { type: [2, 3], color: '--accent' } })
  expect(before?.data[1]).toMatchObject({ value: [MS(1), 90] })
})

test('objectives are lines, and times without a report are grounds within the range', () => {
  const silent = [{ from_ms: MS(0) - 60_000, to_ms: MS(2), name: 'no report' }]
  const marks = series(drawn({ silent })).get('marks')
  expect(marks).toMatchObject({
    markLine: { data: [{ yAxis: 5000, label: { show: false } }] },
    markArea: { data: [[{ xAxis: MS(0), name: 'no report' }, { xAxis: MS(2) }]] },
  })
})

test('on a narrow screen lines have no labels at their ends', () => {
  expect(optionsOf(drawn()).title.map(({ text }) => text)).toEqual([
    'unl.edu 400 ms',
    'unl.edu week before',
    'objective 5.00 s',
  ])
  const narrow = drawn({ width: 390 })
  expect(optionsOf(narrow).title).toEqual([])
  const words = { show: true, formatter: 'objective 5.00 s', position: 'insideEndTop' }
  expect(series(narrow).get('marks')).toMatchObject({ markLine: { data: [{ label: words }] } })
})

test('a file has a heading with range and figures, and room for it', () => {
  const file = drawn({ title: 'Latency of NGRID at unl.edu' })
  const { title, grid, backgroundColor } = optionsOf(file)
  expect(title[0]).toMatchObject({
    text: 'Latency of NGRID at unl.edu',
    subtext: '2026-03-14 10:00 to 2026-03-14 10:05 UTC, p99; dotted: the same range 7 days before',
  })
  expect(title[1]?.text).toMatch(/^● unl\.edu {3}p50 1\.0 ms/)
  expect(grid.top).toBe(optionsOf(drawn()).grid.top + headHeight(file.plot))
  expect([backgroundColor, optionsOf(drawn()).backgroundColor]).toEqual(['--surface', 'transparent'])
})

test('a tick is a time of day, or at midnight the day', () => {
  expect(tickOf(MS(3), 'utc')).toBe('10:03')
  expect(tickOf(Date.parse('2026-03-14T00:00:00Z'), 'utc')).toBe('{day|Sat 14}')
})

test('each of eight lines has a colour and a mark of its own', () => {
  const looks = Array.from({ length: 8 }, (_, place) => lookOfPlace(place))
  expect(new Set(looks.map((look) => look.token)).size).toBe(8)
  expect(new Set(looks.map((look) => look.path)).size).toBe(8)
})
