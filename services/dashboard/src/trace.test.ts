import { describe, expect, it } from 'vitest'
import { address, asked, bar, inOrder, type Delivery, type DeliveryState } from './trace'

function delivery(site: string, state: DeliveryState, ms: number | null = null): Delivery {
  const timing = { distribution_ms: ms, bound_ms: null, slow: null, stages: [] }
  return { site, state, cause: null, reason: 'r', next_action: 'n', timing }
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

describe('the bar of stages', () => {
  it('shares the time out among what is known', () => {
    const stages = [
      { stage: 'origin', ms: 500, across_clocks: true },
      { stage: 'queue', ms: 30, across_clocks: false },
      { stage: 'transfer', ms: 60, across_clocks: true },
      { stage: 'store', ms: -5, across_clocks: false },
      { stage: 'action', ms: null, across_clocks: false },
    ]
    const parts = bar(stages)
    expect(parts.map((part) => part.stage)).toEqual(['queue', 'transfer'])
    expect(parts.reduce((sum, part) => sum + part.share, 0)).toBeCloseTo(100)
    expect(bar([])).toEqual([])
  })
})
