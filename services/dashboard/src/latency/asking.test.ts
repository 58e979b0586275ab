import { afterEach, expect, test, vi } from 'vitest'

import { history, point, spread } from '../fixtures/latency'
import { againAfter_ms, askLines, gapsOf, questionOfView, viewAnswered } from './asking'
import { viewOf } from './linesview'
import { silencesOf } from './chart/silences'

const AT = (minute: number) => `2026-03-14T10:${String(minute).padStart(2, '0')}:00Z`
const VIEW = viewOf(new URLSearchParams('feed=NGRID&site=unl.edu&with=NGRID@gone.edu&minutes=30&before=week'), 'X')

/** A hub that knows all sites but one; returns what it was asked for. */
function hub(): string[] {
  const asked: string[] = []
  const answers: Record<string, unknown> = {
    history: history(AT(0), AT(30), [point(AT(0), 5), point(AT(29), 5)]),
    histogram: spread([[4, 5, 20]], 5000),
    volume: { step_minutes: 1, from: AT(0), to: AT(30), points: [10, 11, 29].map(arrival) },
  }
  vi.stubGlobal('fetch', (address: string) => {
    asked.push(address)
    if (address.includes('gone.edu')) {
      return Promise.resolve(Response.json({ detail: 'There is no site gone.edu.' }, { status: 404 }))
    }
    const kind = address.includes('volume') ? 'volume' : address.includes('histogram') ? 'histogram' : 'history'
    return Promise.resolve(Response.json(answers[kind]))
  })
  return asked
}

function arrival(minute: number) {
  return { at: AT(minute), products: 3, bytes: 30, peak_1s_bytes: 30 }
}

afterEach(() => vi.unstubAllGlobals())

test('a line that the hub refuses is named, and the others are shown', async () => {
  hub()
  const answers = await askLines(VIEW, null, new AbortController().signal)
  expect(answers.answered.map((one) => one.line.site)).toEqual(['unl.edu'])
  expect(answers.problems).toEqual(['There is no site gone.edu.'])
})

test('the week before is asked for once', async () => {
  const asked = hub()
  const { signal } = new AbortController()
  const first = await askLines(VIEW, null, signal)
  const weeks = () => asked.filter((one) => one.includes('until=7d') && one.includes('unl.edu')).length
  expect(weeks()).toBe(1)
  await askLines(VIEW, first, signal)
  expect(weeks()).toBe(1)
  await askLines({ ...VIEW, minutes: 60 }, first, signal)
  expect(weeks()).toBe(2)
})

test('gaps are times with products and without a report, but not the newest minutes', async () => {
  hub()
  const answers = await askLines(VIEW, null, new AbortController().signal)
  const gaps = gapsOf(answers)
  expect(gaps.map((one) => one.gaps.map((gap) => [gap.from, gap.to, gap.products]))).toEqual([[[AT(10), AT(12), 6]]])
  expect(silencesOf(VIEW, gaps)).toEqual([{ from_ms: Date.parse(AT(10)), to_ms: Date.parse(AT(12)), name: '' }])
  expect(silencesOf({ ...VIEW, minutes: 12 }, gaps)[0]?.name).toBe('no report: unl.edu')
  expect(silencesOf({ ...VIEW, off: ['NGRID@unl.edu'] }, gaps)).toEqual([])
})

test('scale and zone need no question; old answers keep their lines and range', async () => {
  hub()
  expect(questionOfView({ ...VIEW, scale: 'linear', zone: 'local', off: ['x'] })).toBe(questionOfView(VIEW))
  expect(questionOfView({ ...VIEW, minutes: 60 })).not.toBe(questionOfView(VIEW))
  const answers = await askLines(VIEW, null, new AbortController().signal)
  const other = { ...VIEW, minutes: 60, lines: [], scale: 'linear' as const }
  expect(viewAnswered(other, answers)).toEqual({ ...VIEW, scale: 'linear' })
})

test('many lines are asked for less often, an ended or long range never again', () => {
  expect(againAfter_ms(VIEW)).toBe(30_000)
  expect(againAfter_ms({ ...VIEW, until: AT(0) })).toBeNull()
  expect(againAfter_ms({ ...VIEW, minutes: 10_080 })).toBeNull()
})
