import { describe, expect, it } from 'vitest'
import { address, asked, bar, inOrder, longest_ms, size, whole_ms } from './trace'
import type { Delivery, DeliveryState, Stage } from './trace'

function delivery(site: string, state: DeliveryState, ms: number | null = null): Delivery {
  const timing = { distribution_ms: ms, end_to_end_ms: null, bound_ms: null, certainty: null, slow: null, stages: [] }
  return { site, state, cause: null, reason: 'r', next_action: 'n', receipt: null, timing, factors: [] }
}

function timed(stage: string, ms: number, bound_ms: number | null): Stage {
  return { stage, ms, across_clocks: bound_ms !== null, bound_ms, certainty: null }
}

describe('the address of a question', () => {
  it('comes back whatever the id holds', () => {
    for (const id of ['nam.grib2', 'IDS|DDPLUS:42', 'a/b #c?d=%25 é', '100%']) {
      expect(asked(address(id))).toEqual({ product: id, site: '' })
      expect(asked(address(id, ' unl.edu '))).toEqual({ product: id, site: 'unl.edu' })
    }
  })

  it('is none on other addresses, and none that can not be read', () => {
    for (const hash of ['', '#feeds', '#/trace/', '#/trace/%E0%A4%A']) expect(asked(hash)).toBeNull()
  })
})

describe('the order of deliveries', () => {
  it('shows who lacks it first, then the slowest', () => {
    const listed = [
      delivery('d', 'not-subscribed'),
      delivery('a', 'stored', 10),
      delivery('c', 'stored', 900),
      delivery('b', 'waiting'),
      delivery('e', 'expired'),
    ]
    expect(inOrder(listed).map((one) => one.site)).toEqual(['e', 'b', 'c', 'a', 'd'])
    expect(listed[0]?.site).toBe('d')
  })
})

describe('a part of the time', () => {
  it('has its time, else its share, else says that it has neither', () => {
    const part = { factor: 'circuit' as const, ms: null, share: null, sentence: 's' }
    expect(size({ ...part, ms: 1200, share: 0.5 })).toBe('1.20 s')
    expect(size({ ...part, share: 0.756 })).toBe('76 %')
    expect(size(part)).toBe('not measured')
  })
})

describe('the bar of stages', () => {
  const stages = [
    timed('origin', 500, null),
    timed('queue', 30, null),
    timed('transfer', 60, 2),
    timed('store', -5, null),
    timed('action', 10, null),
  ]

  it('sums all that is known, the file and what a wrong clock made negative too', () => {
    expect(whole_ms(stages)).toBe(95)
    expect(whole_ms([])).toBe(0)
  })

  it('is to the scale of the slowest site', () => {
    const slow = delivery('slow', 'stored', 400)
    slow.timing.stages = [timed('transfer', 400, 2)]
    const quick = delivery('quick', 'stored', 95)
    quick.timing.stages = stages
    const scale = longest_ms([slow, quick])
    expect(scale).toBe(400)
    expect(bar(slow.timing.stages, scale).map((part) => part.share)).toEqual([100])
    const parts = bar(stages, scale)
    expect(parts.map((part) => part.stage)).toEqual(['queue', 'transfer', 'store', 'action'])
    expect(parts.map((part) => [part.ms, part.bound_ms])).toContainEqual([-5, null])
    expect(parts.map((part) => [part.ms, part.bound_ms])).toContainEqual([60, 2])
    expect(parts.reduce((sum, part) => sum + part.share, 0)).toBeCloseTo(25)
    expect(bar([], 0)).toEqual([])
    expect(bar([timed('store', -5, null)], 0).map((part) => part.share)).toEqual([0])
  })
})
