import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

import type { Candidate, WhatIf } from '../api'
import { Asker, type Shown } from './asker'
import {
  commandOf,
  fieldOf,
  flipWords,
  indexOf,
  isToday,
  problemOf,
  queryOf,
  read,
  requestOf,
  shareOf,
  SLIDERS,
  TODAY,
  wantedOf,
  withValue,
  wordsOf,
  type Wanted,
} from './conditions'
import { chartOf, figuresOf, headlineOf } from './points'

const ALL: Wanted = {
  values: { sites: 104, egress_bps: 200e6, objective_ms: 5_000, setup_s: 10 },
  traffic: 'busiest',
}

describe('conditions', () => {
  it('are the same in the address and back', () => {
    const query = new URLSearchParams(Object.entries(queryOf(ALL)).map(([key, value]) => [key, value ?? '']))
    expect(query.toString()).toBe('sites=104&egress=200M&objective=5s&setup=10s&traffic=busiest')
    expect(wantedOf(query)).toEqual(ALL)
    expect(wantedOf(new URLSearchParams('sites=0&egress=many&objective=5&traffic=yesterday'))).toEqual(TODAY)
    expect(isToday(TODAY)).toBe(true)
    expect(isToday(withValue(TODAY, 'sites', 104))).toBe(false)
  })

  it('every stop of a slider survives the address and its field', () => {
    for (const slider of SLIDERS) {
      slider.stops.forEach((stop, index) => {
        const query = queryOf(withValue(TODAY, slider.condition, stop))
        const read_back = wantedOf(new URLSearchParams({ [slider.key]: query[slider.key] ?? '' }))
        expect(read_back.values[slider.condition]).toBe(stop)
        expect(read(slider.condition, fieldOf(slider.condition, stop))).toBe(stop)
        expect(indexOf(slider, stop)).toBe(index)
        expect(stop).toBeGreaterThan(slider.stops[index - 1] ?? 0)
      })
    }
  })

  it('name the command with the same values', () => {
    expect(commandOf('NGRID', ALL)).toBe(
      'downburst plans what-if NGRID --sites 104 --egress 200M --objective 5s --setup 10s --traffic busiest',
    )
    expect(commandOf('IDS|DDPLUS', TODAY)).toBe("downburst plans what-if 'IDS|DDPLUS'")
    expect(commandOf('X', withValue(TODAY, 'objective_ms', 250))).toContain('--objective 250ms')
  })

  it('ask the hub only for those that differ from today', () => {
    expect(requestOf(withValue(TODAY, 'sites', 104), false)).toEqual({ sites: 104, traffic: 'now', flips: false })
    expect(requestOf(ALL, true)).toEqual({ ...ALL.values, traffic: 'busiest', flips: true })
  })

  it('are read with their units, within the limits of the hub', () => {
    expect(read('egress_bps', '1.5 Gb/s')).toBe(1.5e9)
    expect(read('egress_bps', '200M')).toBe(200e6)
    expect(read('objective_ms', '250 ms')).toBe(250)
    expect(read('objective_ms', '2 m')).toBe(120_000)
    expect(read('sites', ' 104 sites')).toBe(104)
    for (const text of ['', '0', '501', '1.5', 'many', '-3']) expect(read('sites', text)).toBeNull()
    for (const text of ['200', '200 MB/s', '0.5M', '401G']) expect(read('egress_bps', text)).toBeNull()
    expect(problemOf('sites')).toBe('Sites: enter a value from 1 to 500, such as 104.')
    expect(problemOf('objective_ms')).toBe('Objective, p99: enter a value from 10 ms to 600 s, such as 5 s.')
  })

  it('have a place on their slider, also between two stops', () => {
    for (const slider of SLIDERS) {
      expect(shareOf(slider, slider.stops[0] ?? 0)).toBe(0)
      expect(shareOf(slider, slider.stops.at(-1) ?? 0)).toBe(1)
      expect(shareOf(slider, 1e15)).toBe(1)
      const [low, high] = [slider.stops[20] ?? 0, slider.stops[21] ?? 0]
      expect(shareOf(slider, (low + high) / 2)).toBeGreaterThan(shareOf(slider, low))
      expect(shareOf(slider, (low + high) / 2)).toBeLessThan(shareOf(slider, high))
    }
  })

  it('are worded', () => {
    expect(wordsOf('sites', 1)).toBe('1 site')
    expect(flipWords('sites', 23, 'multicast')).toBe('at 23 sites: multicast')
    expect(flipWords('egress_bps', 41.2e6, 'multicast')).toBe('at 41.2 Mb/s: multicast')
    expect(flipWords('setup_s', 2, 'dynamic-circuit')).toBe('at 2 s: dynamic-circuit')
  })
})

function candidate(given: Partial<Candidate>): Candidate {
  const none = { peak_egress_bps: null, predicted_p50_ms: null, predicted_p95_ms: null, predicted_max_ms: null }
  const figures = { egress_bps: 8e6, predicted_p99_ms: 800, reserved_bps: null, price_bps: null, score_bps: null }
  return { transport: 'multicast', feasible: true, reason: 'one group', ...none, ...figures, ...given }
}

const COPIES = candidate({ transport: 'unicast', egress_bps: 2.26e9, predicted_p99_ms: 9_400 })
const REFUSED = candidate({ transport: 'static-circuit', feasible: false, egress_bps: null, predicted_p99_ms: null })
const BOX = { width: 400, height: 200, left: 50, top: 10, right: 10, bottom: 40 }

describe('candidates', () => {
  it('are points between whole decades, and those without figures are none', () => {
    const chart = chartOf([candidate({}), COPIES, REFUSED], 'multicast', 5_000, BOX)
    expect(chart.points.map((one) => one.transport)).toEqual(['unicast', 'multicast'])
    expect(chart.x_ticks.map((one) => one.text)).toEqual(['1 Mb/s', '10 Mb/s', '100 Mb/s', '1 Gb/s', '10 Gb/s'])
    expect(chart.y_ticks.map((one) => one.text)).toEqual(['100 ms', '1 s', '10 s'])
    const [late, early] = chart.points
    expect(late?.y).toBeLessThan(chart.objective_y)
    expect(early?.y).toBeGreaterThan(chart.objective_y)
    expect([late?.isLeft, early?.isLeft]).toEqual([true, false])
    expect(early?.label).toBe('multicast, chosen')
    expect(chart.objective_label_y).toBe(chart.objective_y - 4)
    const high = chartOf([candidate({})], 'multicast', 10_000, BOX)
    expect(high.objective_label_y).toBeGreaterThan(high.objective_y)
  })

  it('keep their labels apart and within the chart', () => {
    const near = [candidate({}), candidate({ transport: 'unicast' }), candidate({ transport: 'static-circuit' })]
    const { points } = chartOf(near, 'multicast', 1e5, BOX)
    const heights = points.map((one) => one.label_y)
    expect(heights[1]).toBe((heights[0] ?? 0) + 16)
    expect(heights[2]).toBe((heights[0] ?? 0) + 32)
    expect(Math.max(...heights)).toBeLessThanOrEqual(BOX.height - BOX.bottom)
    expect(chartOf([], 'unicast', 500, BOX).points).toEqual([])
  })

  it('are summed up in a headline and the deciding figures', () => {
    const judged = { transport: 'multicast' as const, sentence: '', candidates: [candidate({}), COPIES] }
    const today = { sites: 5, egress_bps: 1e9, objective_ms: 5_000, setup_s: null }
    const answer: WhatIf = {
      feed: 'NGRID',
      today,
      tried: { ...today, sites: 104 },
      traffic: 'now',
      products: 600,
      span_s: 300,
      mean_bps: 8e6,
      begun_s_ago: 300,
      now: judged,
      then: judged,
      flips: [],
      complete: true,
      notes: [],
    }
    expect(headlineOf(answer)).toBe('104 sites: still multicast')
    expect(figuresOf(answer)).toBe('8.00 Mb/s, by unicast 2260 Mb/s; p99 800 ms')
    const moved = { ...answer, tried: { ...today, sites: 1 }, then: { ...judged, transport: 'unicast' as const } }
    expect(headlineOf(moved)).toBe('1 site: unicast instead of multicast')
    expect(figuresOf(moved)).toBe('2260 Mb/s; p99 9.40 s')
  })
})

describe('questions', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  function recorded(said: string[], name: string, answers: () => Promise<string>): Shown<string> {
    return {
      ask: (flips) => {
        said.push(`${name} asked${flips ? ' for flips' : ''}`)
        return answers()
      },
      show: (answer, isSearching) => said.push(`${answer} shown${isSearching ? ', searching' : ''}`),
      fail: (error) => said.push(`failed: ${String(error)}`),
    }
  }

  it('wait until the conditions rest, then ask for the choice and for the flips', async () => {
    const said: string[] = []
    const asker = new Asker<string>(100, 300)
    for (const name of ['a', 'b', 'c']) asker.want(recorded(said, name, () => Promise.resolve(name)))
    await vi.advanceTimersByTimeAsync(99)
    expect(said).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(said).toEqual(['c asked', 'c shown, searching'])
    await vi.advanceTimersByTimeAsync(300)
    expect(said.slice(2)).toEqual(['c asked for flips', 'c shown'])
  })

  it('search no flips where none are wanted', async () => {
    const said: string[] = []
    new Asker<string>(0, 0).want(
      recorded(said, 'a', () => Promise.resolve('a')),
      false,
    )
    await vi.advanceTimersByTimeAsync(1_000)
    expect(said).toEqual(['a asked', 'a shown, searching'])
  })

  it('show the last answer, whatever comes first', async () => {
    const said: string[] = []
    const asker = new Asker<string>(0, 1_000_000)
    let answer: (text: string) => void = () => undefined
    asker.want(recorded(said, 'slow', () => new Promise((resolve) => (answer = resolve))))
    await vi.advanceTimersByTimeAsync(1)
    asker.want(recorded(said, 'fast', () => Promise.resolve('fast')))
    await vi.advanceTimersByTimeAsync(1)
    answer('slow')
    await vi.advanceTimersByTimeAsync(1)
    expect(said).toEqual(['slow asked', 'fast asked', 'fast shown, searching'])
  })

  it('say an error once, and none after they were dropped', async () => {
    const said: string[] = []
    const asker = new Asker<string>(0, 0)
    asker.want(recorded(said, 'a', () => Promise.reject(new Error('away'))))
    await vi.advanceTimersByTimeAsync(10)
    expect(said).toEqual(['a asked', 'failed: Error: away'])
    asker.want(recorded(said, 'b', () => Promise.reject(new Error('away'))))
    asker.stop()
    await vi.advanceTimersByTimeAsync(10)
    expect(said).toHaveLength(2)
  })
})
