import { expect, test } from 'vitest'

import { delivery, staged, timed } from '../fixtures/deliveries'
import { axisOf, end_ms, headline, objectiveNote, partsOf, placeOf, stagesOf, titleOf, verdictOf } from './waterfall'

const QUICK = staged('quick', [
  timed('origin', 50),
  timed('queue', 30),
  timed('transfer', 60, 2),
  timed('store', -5),
  timed('action', 10),
])
const SLOW = staged('slow', [timed('origin', 50), timed('queue', 400), timed('transfer', 1600, 2), timed('store', 40)])

test('one axis holds all deliveries, the way to the hub, and an objective that is near', () => {
  const axis = axisOf([QUICK, SLOW], 0)
  expect(end_ms(SLOW)).toBe(2040)
  expect(axis.from_ms).toBe(-50)
  expect(axis.to_ms).toBeGreaterThan(2040)
  expect(axis.isCut).toBe(false)
  expect(axis.ticks_ms).toEqual([0, 500, 1000, 1500, 2000])
  expect(axisOf([{ ...SLOW, objective_ms: 5000 }], 0).to_ms).toBeGreaterThan(5000)
  expect(axisOf([{ ...SLOW, objective_ms: 60_000 }], 0).to_ms).toBeLessThan(2500)
})

test('stages lie behind each other to scale, and a negative one has no length', () => {
  const axis = axisOf([QUICK, SLOW], 0)
  const parts = partsOf(QUICK.timing.stages, axis)
  expect(parts.map((part) => part.stage)).toEqual(['origin', 'queue', 'transfer', 'store', 'action'])
  const [origin, queue, transfer, store, action] = parts
  expect(origin?.left).toBe(0)
  expect(queue?.left).toBeCloseTo(placeOf(0, axis))
  expect(transfer?.left).toBeCloseTo((queue?.left ?? 0) + (queue?.width ?? 0))
  expect((transfer?.width ?? 0) / (queue?.width ?? 1)).toBeCloseTo(2)
  expect([store?.ms, store?.width]).toEqual([-5, 0])
  expect((action?.left ?? 0) + (action?.width ?? 0)).toBeCloseTo(placeOf(100, axis))
  expect(end_ms(QUICK)).toBe(100)
})

test('a long way to the hub is cut and stretches nothing', () => {
  const old = staged('old', [timed('origin', 3_600_000), timed('queue', 30), timed('transfer', 60)])
  const axis = axisOf([{ ...old, objective_ms: null }], 0)
  expect(axis.isCut).toBe(true)
  expect(-axis.from_ms).toBeCloseTo(axis.to_ms / 5)
  const [origin, queue] = partsOf(old.timing.stages, axis)
  expect([origin?.ms, origin?.left]).toEqual([3_600_000, 0])
  expect(queue?.left).toBeCloseTo(placeOf(0, axis))
})

test('a product that no site has yet has an axis too', () => {
  expect(axisOf([delivery('a', 'waiting')], 5000).to_ms).toBeGreaterThanOrEqual(5000)
  const axis = axisOf([{ ...delivery('a', 'waiting'), objective_ms: null }], 0)
  expect(axis.to_ms).toBeGreaterThan(0)
  expect(axis.ticks_ms.length).toBeLessThanOrEqual(7)
  expect(partsOf([], axis)).toEqual([])
  expect(partsOf([timed('queue', null), timed('origin', -9)], axis)).toEqual([])
})

test('green needs a latency within the objective', () => {
  expect(verdictOf(delivery('a', 'stored', 900), 0)).toEqual({ mark: 'within', words: 'stored', isGood: true })
  expect(verdictOf(delivery('a', 'stored', 1001), 0)).toMatchObject({ mark: 'warning', words: 'stored, late' })
  expect(verdictOf(delivery('a', 'stored'), 0)).toMatchObject({ mark: 'unknown', isGood: false })
  expect(verdictOf(delivery('a', 'sending'), 900).mark).toBe('catching-up')
  expect(verdictOf(delivery('a', 'waiting'), 1001).mark).toBe('critical')
  expect(verdictOf(delivery('a', 'expired'), 0).mark).toBe('critical')
  expect(verdictOf(delivery('a', 'not-subscribed'), 0)).toMatchObject({ mark: 'unknown', words: 'not subscribed' })
})

test('one sentence names the sites that lack it or had it late', () => {
  const quick = (site: string) => delivery(site, 'stored', 5)
  const others = [delivery('e', 'not-subscribed'), delivery('w', 'waiting'), delivery('l', 'stored', 5000)]
  expect(headline([quick('a'), quick('b'), ...others], 0)).toBe(
    '2 of 4 sites had it within the objective; w waits; l was late',
  )
  expect(headline([quick('a')], 0)).toBe('1 of 1 site had it within the objective')
  expect(headline([delivery('a', 'denied'), delivery('b', 'rejected')], 0)).toBe(
    '0 of 2 sites had it within the objective; a and b do not get it',
  )
  expect(headline(['a', 'b', 'c'].map((site) => delivery(site, 'stored')), 0)).toContain(
    '3 have it, their latencies are not known',
  )
  expect(headline([delivery('e', 'not-subscribed')], 0)).toBe('No site subscribes to it')
})

test('the stages that occur, the objectives, and a delivery in a title', () => {
  expect(stagesOf([QUICK, SLOW])).toEqual(['origin', 'queue', 'transfer', 'store', 'action'])
  expect(stagesOf([delivery('a', 'waiting')])).toEqual([])
  const axis = axisOf([SLOW], 0)
  expect(objectiveNote([SLOW], axis)).toBe('Dashed: objective 1.00 s.')
  expect(objectiveNote([SLOW, { ...QUICK, objective_ms: 500 }], axis)).toBe('Dashed: objectives of 500 ms to 1.00 s.')
  expect(objectiveNote([{ ...SLOW, objective_ms: 60_000 }], axis)).toBe('The objective 60.0 s is beyond the axis.')
  expect(objectiveNote([{ ...SLOW, objective_ms: null }], axis)).toBe('')
  expect(titleOf(SLOW)).toBe('slow: stored 1.04 s after the objective')
  expect(titleOf(QUICK)).toBe('quick: stored after 85.0 ms')
  expect(titleOf(delivery('a', 'not-subscribed'))).toBe('a: not subscribed')
})
