import { describe, expect, it } from 'vitest'
import { delivery } from '../fixtures/deliveries'
import { address, asked, inOrder, size } from './trace'

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
