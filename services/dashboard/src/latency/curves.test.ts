import { expect, test } from 'vitest'

import { history, lineOf, point, spread } from '../fixtures/latency'
import {
  csvOf,
  curvesOn,
  extentOf,
  fileNameOf,
  isFew,
  isFlagged,
  momentOf,
  objectivesOf,
  plotOf,
  plotWords,
  stepAt,
  stepWord,
  stepWords,
  tableOf,
  valuesOf,
  type Answered,
  type Plot,
} from './curves'
import { viewOf, type LinesView } from './linesview'

const AT = (minute: number) => `2026-03-14T10:0${minute}:00Z`
const BEFORE = (minute: number) => `2026-03-07T10:0${minute}:00Z`
const VIEW = viewOf(new URLSearchParams('feed=NGRID&site=unl.edu&with=NGRID@snu.ac.kr&minutes=5&before=week'), 'X')
const UNL: Answered = {
  line: lineOf('NGRID', 'unl.edu'),
  history: history(AT(0), AT(5), [point(AT(1), 200), point(AT(3), 400)]),
  spread: spread([[158, 200, 30]], 5000),
  before: history(BEFORE(0), BEFORE(5), [point(BEFORE(1), 90)]),
}
const SNU: Answered = {
  line: lineOf('NGRID', 'snu.ac.kr'),
  history: history(AT(0), AT(5), [point(AT(2), 40_000)], 30_000),
  spread: spread([[39_800, 50_100, 9]], 30_000),
  before: null,
}

function plot(changes: Partial<LinesView> = {}, answers = [UNL, SNU]): Plot {
  const found = plotOf({ ...VIEW, ...changes }, answers)
  if (found === null) throw new Error('no plot')
  return found
}

test('the range is drawn as it was chosen, and a step without a report is a gap', () => {
  const drawn = plot()
  expect([drawn.from_ms, drawn.to_ms, drawn.step_ms]).toEqual([Date.parse(AT(0)), Date.parse(AT(5)), 60_000])
  expect(drawn.times_ms).toHaveLength(5)
  expect(valuesOf(drawn.curves[0]?.points ?? [], 'p99', 'log')).toEqual([null, 200, null, 400, null])
  expect(plotOf(VIEW, [])).toBeNull()
})

test('the week before lies over the same steps', () => {
  expect(valuesOf(plot().curves[0]?.before ?? [], 'p99', 'log')).toEqual([null, 90, null, null, null])
  expect(valuesOf(plot().curves[1]?.before ?? [], 'p99', 'log')).toEqual([null, null, null, null, null])
})

test('the value axis holds the curves that are on and their objectives', () => {
  expect(extentOf(plot(), 'log')).toEqual({ floor_ms: 10, ceiling_ms: 100_000 })
  expect(extentOf(plot({ off: ['NGRID@snu.ac.kr'] }), 'log')).toEqual({ floor_ms: 10, ceiling_ms: 10_000 })
  expect(extentOf(plot(), 'linear')).toEqual({ floor_ms: 0, ceiling_ms: 50_000 })
  const wrong = { ...UNL, history: history(AT(0), AT(5), [point(AT(1), -3)]), before: null }
  expect(extentOf(plot({}, [wrong]), 'linear').floor_ms).toBe(-3)
})

test('a value at or below zero is no value on a log axis, but a flag', () => {
  const wrong = point(AT(1), -3)
  expect(valuesOf([wrong], 'p99', 'log')).toEqual([null])
  expect(valuesOf([wrong], 'p99', 'linear')).toEqual([-3])
  const flagged = [wrong, point(AT(1), 3), null].map((one) => isFlagged(one, 'p99'))
  expect(flagged).toEqual([true, false, false])
})

test('different objectives are named by their lines, a common one is not', () => {
  expect(objectivesOf(plot()).map((one) => one.words)).toEqual([
    'objective 5.00 s: unl.edu',
    'objective 30.0 s: snu.ac.kr',
  ])
  expect(objectivesOf(plot({}, [UNL])).map((one) => one.words)).toEqual(['objective 5.00 s'])
})

test('words name range, figure, lines and the worst value of each', () => {
  expect(plotWords(plot(), 'utc')).toBe(
    'Latency of NGRID at unl.edu and snu.ac.kr per minute, p99, with the week before, ' +
      '2026-03-14 10:00 to 2026-03-14 10:05 UTC. ' +
      'unl.edu: worst 400 ms at 2026-03-14 10:03; snu.ac.kr: worst 40.0 s at 2026-03-14 10:02.',
  )
  expect(stepWords(plot(), 1, 'utc')).toBe(
    '2026-03-14 10:01 UTC. unl.edu 200 ms, a week before 90.0 ms; snu.ac.kr no report, a week before no report',
  )
  expect([60_000, 300_000, 3_600_000, 86_400_000].map(stepWord)).toEqual(['minute', '5 minutes', 'hour', 'day'])
  expect(momentOf(Date.parse(AT(5)), 'utc', true)).toBe('10:05')
})

test('a moment is of a step of the range, or of none', () => {
  expect(stepAt(plot(), Date.parse(AT(2)) + 30_000)).toBe(2)
  expect(stepAt(plot(), Date.parse(AT(6)))).toBeNull()
  expect(stepAt(plot(), Date.parse(AT(0)) - 1)).toBeNull()
})

test('the table leaves out steps without any report, the file does not', () => {
  expect(tableOf(plot(), 'utc')).toEqual([
    { at: '2026-03-14 10:01', cells: ['200 ms', 'no report'] },
    { at: '2026-03-14 10:02', cells: ['no report', '40.0 s'] },
    { at: '2026-03-14 10:03', cells: ['400 ms', 'no report'] },
  ])
  const lines = csvOf(plot()).trimEnd().split('\r\n')
  expect(lines[0]).toBe('at,feed,site,series,p50_ms,p95_ms,p99_ms,max_ms,products,objective_ms')
  expect(lines).toHaveLength(1 + 4 * 5)
  expect(lines[2]).toBe('2026-03-14T10:01:00Z,NGRID,unl.edu,range,200,200,200,200,10,5000')
  expect(lines[3]).toBe('2026-03-14T10:02:00Z,NGRID,unl.edu,range,,,,,0,5000')
  expect(lines[7]).toBe('2026-03-07T10:01:00Z,NGRID,unl.edu,7 days before,90,90,90,90,10,5000')
})

test('a file quotes names that would break it, and its own name is plain', () => {
  const odd = { ...UNL, line: lineOf('A,"B"', null) }
  const drawn = plot({ lines: [odd.line], weekBefore: false }, [odd])
  expect(csvOf(drawn)).toContain(',"A,""B""",all sites,range,')
  expect(fileNameOf(drawn)).toBe('latency-A_B_-all-20260314T1005Z')
  expect(fileNameOf(plot())).toBe('latency-NGRID-unl.edu-NGRID-snu.ac.kr-20260314T1005Z')
})

test('curves that are switched off are not drawn, and few products are marked', () => {
  expect(curvesOn(plot({ off: ['NGRID@unl.edu'] })).map((curve) => curve.name)).toEqual(['snu.ac.kr'])
  expect(plot().curves.map(isFew)).toEqual([false, true])
})
