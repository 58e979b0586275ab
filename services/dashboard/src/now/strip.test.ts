import { expect, test } from 'vitest'

import type { CellState, Strip, StripCell, StripNow, StripRow } from '../api'
import { cellWords, isPartial, lookOf, nowDetail, nowWords, rowName, rowsOf, rowWords } from './strip'
import { silencesOf, slotsOf, ticksOf } from './strip'

const HUB_NOW = '2026-11-23T18:42:07Z'
const cell = (state: CellState, share: number | null = null): StripCell => ({
  state,
  share,
  feed: share === null ? null : 'NGRID',
})
const present = (change: Partial<StripNow> = {}): StripNow => ({
  ...cell('within', 0.31),
  p99_ms: 9_300,
  objective_ms: 30_000,
  products: 731,
  since: null,
  ...change,
})
const row = (cells: StripCell[], change: Partial<StripRow> = {}): StripRow => ({
  site: 'snu.ac.kr',
  sites: 1,
  cells,
  now: present(),
  ...change,
})
/** The beginnings of quarter hours from 22:00 of a Sunday. */
const quarters = (count: number) =>
  Array.from({ length: count }, (_, at) => new Date(Date.UTC(2026, 10, 22, 22) + at * 900_000).toISOString())

test('four levels end at 10, 25, 50 and 100 % of the objective; other states have a look of their own', () => {
  const looks = [0, 0.1, 0.11, 0.25, 0.5, 0.51, 1].map((share) => lookOf(cell('within', share)))
  expect(looks).toEqual(['level-1', 'level-1', 'level-2', 'level-2', 'level-3', 'level-4', 'level-4'])
  const states: CellState[] = ['late', 'down', 'no-report', 'nothing', 'unread']
  expect(states.map((state) => lookOf(cell(state, 1.6)))).toEqual(states)
})

test('on a phone a cell is an hour of the clock, as bad as its worst quarter hour', () => {
  const hour = [cell('within', 0.1), cell('within', 0.4), cell('nothing'), cell('within', 0.2)]
  const cells = [...hour, cell('down'), cell('late', 2)]
  const slots = slotsOf(row(cells), quarters(6), 4)
  expect(slots.map((slot) => [slot.cell.state, slot.cell.share])).toEqual([
    ['within', 0.4],
    ['down', null],
  ])
  const half = slotsOf(row(cells.slice(2)), quarters(6).slice(2), 4)
  expect(half.map((slot) => new Date(slot.at).getUTCHours())).toEqual([22, 23])
  expect(slotsOf(row(cells), quarters(6))).toHaveLength(6)
})

test('each third hour has a label, the first one of a day its name', () => {
  const cells = Array.from({ length: 96 }, () => cell('nothing'))
  const ticks = ticksOf(slotsOf(row(cells), quarters(96)))
  expect(ticks.slice(0, 2)).toEqual([
    { slot: 8, text: 'Mon 00:00', isDay: true },
    { slot: 20, text: '03:00', isDay: false },
  ])
  expect(ticks).toHaveLength(7)
  const onAPhone = ticksOf(slotsOf(row(cells), quarters(96)), true)
  expect(onAPhone.map((tick) => tick.text)).toEqual(['Mon 00:00', '12:00'])
  const atEnd = slotsOf(row(cells), quarters(104).slice(8))
  const texts = ticksOf(atEnd).map((tick) => tick.text)
  expect([texts.length, texts[0], texts.at(-1)]).toEqual([8, 'Mon 00:00', '21:00'])
})

test('cells, rows and their present are told in words', () => {
  const [slot] = slotsOf(row([cell('late', 1.64)]), quarters(1))
  expect(slot && cellWords(slot, 15)).toBe('22:00 to 22:15 UTC: late, 164 % of the objective by NGRID')
  expect(rowWords(row([cell('late', 2), cell('down'), cell('late', 3), cell('within', 0.1)]))).toBe(
    '1 down, 2 late of 4 quarter hours',
  )
  expect(rowWords(row([cell('within', 0.1)]))).toMatch(/^within the objectives or without products in all/)
  expect(nowWords(present(), HUB_NOW)).toEqual({ figure: '31 %', feed: 'NGRID' })
  const down = present({ ...cell('down'), since: '2026-11-23T18:36:04Z', p99_ms: null })
  expect([nowWords(down, HUB_NOW).figure, nowDetail(down)]).toEqual(['down, 6 min', ''])
  expect(nowWords({ ...down, since: null }, HUB_NOW).figure).toBe('down')
  expect(nowWords(present(cell('no-report')), HUB_NOW)).toEqual({ figure: 'no report', feed: '' })
  expect(nowDetail(present())).toBe('p99 of 731 products in 15 minutes is 9.30 s, the objective 30.0 s')
  expect(nowDetail(present({ products: 3 }))).toMatch(/^the worst of 3 products/)
})

test('the others come last, and unread cells show that the hub still reads', () => {
  const one = row([cell('within', 0.1)])
  const strip: Strip = { quarters: quarters(1), rows: [one], others: null, never_connected: 0 }
  const others = row([cell('unread')], { site: null, sites: 128 })
  expect([isPartial(strip), isPartial({ ...strip, others })]).toEqual([false, true])
  expect(rowsOf({ ...strip, others }).map(rowName)).toEqual(['snu.ac.kr', '128 others'])
  expect(rowName({ ...others, sites: 1 })).toBe('1 other')
})

test('times without reports have a sentence each, and the rest of many a number', () => {
  const states = (letters: string) => [...letters].map((one) => cell(one === '-' ? 'no-report' : 'within', 0.1))
  const stripOf = (...cells: StripCell[][]): Strip => ({
    ...{ quarters: quarters(6), others: null, never_connected: 0 },
    rows: cells.map((one) => row(one)),
  })
  expect(silencesOf(stripOf(states('wwwwww')))).toEqual([])
  expect(silencesOf(stripOf(states('w--ww-')))).toEqual([
    'snu.ac.kr sent no latency reports from 22:15 to 22:45.',
    'snu.ac.kr sent no latency reports since 23:15.',
  ])
  expect(silencesOf(stripOf(states('-w-w-w'), states('-w-w-w'))).at(-1)).toBe('3 more such times are hatched.')
})
