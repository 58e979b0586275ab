import { expect, test } from 'vitest'

import { routeOf } from '../route'
import {
  addressOfView,
  between,
  keyOf,
  lineQuestion,
  nameOf,
  shownLines,
  stepOfRange,
  switched,
  titleOfLines,
  toggled,
  viewOf,
  weekBefore,
  wider,
  type LinesView,
} from './linesview'

const UNL = { feed: 'NGRID', site: 'unl.edu' }
const SNU = { feed: 'IDS|DDPLUS', site: 'snu.ac.kr' }
const ALL = { feed: 'NGRID', site: null }

function view(changes: Partial<LinesView> = {}): LinesView {
  return { ...viewOf(new URLSearchParams('feed=NGRID&site=unl.edu'), 'X'), ...changes }
}

test('an address reproduces the whole view', () => {
  const whole = view({
    lines: [UNL, SNU, ALL],
    off: [keyOf(SNU)],
    kind: 'queueing',
    figure: 'max',
    minutes: 360,
    until: '2026-03-14T16:00:00Z',
    scale: 'linear',
    zone: 'local',
    weekBefore: true,
  })
  expect(viewOf(routeOf(addressOfView(whole)).query, 'X')).toEqual(whole)
  expect(viewOf(routeOf(addressOfView(view())).query, 'X')).toEqual(view())
  expect(addressOfView(view())).toBe('#/latency?site=unl.edu&feed=NGRID&minutes=1440')
})

test('an address without a line stands for a feed at all sites over a day', () => {
  expect(viewOf(new URLSearchParams(), 'NGRID')).toEqual(view({ lines: [ALL] }))
  expect(viewOf(new URLSearchParams(), '').lines).toEqual([])
})

test('broken parts of an address are passed over, and there are at most eight lines', () => {
  const query = new URLSearchParams({ feed: 'NGRID', with: 'x @y NGRID@ A@1 A@2 A@3 A@4 A@5 A@6 A@7 A@8', show: 'p12' })
  const read = viewOf(query, 'X')
  expect(read.lines.map(keyOf)).toEqual(['NGRID@', 'A@1', 'A@2', 'A@3', 'A@4', 'A@5', 'A@6', 'A@7'])
  expect(read.figure).toBe('p99')
})

test('a user of one site sees that site alone', () => {
  const query = new URLSearchParams({ feed: 'NGRID', site: 'unl.edu', with: 'HDS@unl.edu HDS@snu.ac.kr' })
  expect(viewOf(query, 'X', 'psu.edu').lines.map(keyOf)).toEqual(['NGRID@psu.edu', 'HDS@psu.edu'])
})

test('lines are added and removed; the first chosen one replaces the default', () => {
  expect(toggled(view({ lines: [ALL] }), UNL, false)).toEqual({ lines: [UNL], off: [] })
  expect(toggled(view({ lines: [UNL] }), SNU, true)).toEqual({ lines: [UNL, SNU] })
  expect(toggled(view({ lines: [UNL, SNU] }), UNL, true)).toEqual({ lines: [SNU] })
  expect(toggled(view({ lines: [UNL] }), UNL, true)).toEqual({})
  const eight = Array.from({ length: 8 }, (_, at) => ({ feed: 'A', site: `${at}` }))
  expect(toggled(view({ lines: eight }), SNU, true)).toEqual({})
})

test('the legend switches lines, and one always stays on', () => {
  const two = view({ lines: [UNL, SNU] })
  expect(switched(two, UNL)).toEqual({ off: [keyOf(UNL)] })
  const one = { ...two, off: [keyOf(UNL)] }
  expect(shownLines(one)).toEqual([SNU])
  expect(switched(one, SNU)).toEqual({})
  expect(switched(one, UNL)).toEqual({ off: [] })
  expect(shownLines({ ...two, off: [keyOf(UNL), keyOf(SNU)] })).toEqual([UNL, SNU])
})

test('a zoom is a range of whole minutes, and twice a range ends at the present', () => {
  const at = (text: string) => Date.parse(`2026-03-14T${text}Z`)
  expect(between(at('10:05:30'), at('10:00:10'))).toEqual({ minutes: 6, until: '2026-03-14T10:06:00Z' })
  expect(between(at('10:00:00'), at('10:00:00'))).toEqual({ minutes: 2, until: '2026-03-14T10:02:00Z' })
  const zoomed = view({ minutes: 60, until: '2026-03-14T10:00:00Z' })
  expect(wider(zoomed, at('12:00:00'))).toEqual({ minutes: 120, until: '2026-03-14T10:30:00Z' })
  expect(wider(zoomed, at('10:20:00'))).toEqual({ minutes: 120, until: null })
  expect(wider(view(), at('10:20:00'))).toEqual({ minutes: 2880, until: null })
})

test('titles and names leave out what the lines have in common', () => {
  expect(titleOfLines([ALL])).toBe('Latency of NGRID at all sites')
  expect(titleOfLines([UNL, { ...UNL, site: 'psu.edu' }])).toBe('Latency of NGRID at unl.edu and psu.edu')
  expect(titleOfLines([UNL, SNU, ALL])).toBe('Latency of 2 feeds at unl.edu, snu.ac.kr and all sites')
  expect([nameOf(UNL, [UNL, ALL]), nameOf(ALL, [UNL, ALL])]).toEqual(['unl.edu', 'all sites'])
  expect(nameOf(UNL, [UNL, { feed: 'HDS', site: 'unl.edu' }])).toBe('NGRID')
  expect(nameOf(SNU, [UNL, SNU])).toBe('snu.ac.kr IDS|DDPLUS')
})

test('the questions for a line, and for the same range a week before', () => {
  expect(lineQuestion(view(), UNL)).toBe('feed=NGRID&kind=distribution&minutes=1440&site=unl.edu')
  expect(lineQuestion(view(), ALL, weekBefore(view()))).toBe('feed=NGRID&kind=distribution&minutes=1440&until=7d')
  expect(weekBefore(view({ until: '2026-03-14T10:00:00Z' }))).toBe('2026-03-07T10:00:00Z')
  expect([60, 360, 1440, 10_080, 99_000].map(stepOfRange)).toEqual(['minute', 'minute', '5-minutes', 'hour', 'day'])
})
