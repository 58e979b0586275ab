import { describe, expect, it } from 'vitest'

import { endOf, figureOf, lostOf, remarkOf, type Measurement } from './measurements'

const FIGURE = { value: 42_100, unit: 'us' as const, error: 820, lost_share: 0.02, more: {}, note: '' }
const MEASURED: Measurement = {
  number: 1,
  point: 'unl',
  at: '2026-06-01T11:55:00Z',
  kind: 'latency',
  source: 'ps.unl.edu',
  destination: '192.0.2.9',
  source_site: 'unl.edu',
  destination_site: null,
  run: '1c',
  figure: FIGURE,
  refused: '',
}

describe('figures of measurements', () => {
  it('have their error, or say that it is not known', () => {
    expect(figureOf(MEASURED)).toBe('42.1 ms ± 0.82 ms')
    expect(figureOf({ ...MEASURED, figure: { ...FIGURE, error: null } })).toBe('42.1 ms, error not known')
    expect(figureOf({ ...MEASURED, figure: { ...FIGURE, error: 0 } })).toBe('42.1 ms')
    expect(figureOf({ ...MEASURED, figure: { ...FIGURE, value: -8_000 } })).toContain('8.0 ms')
  })

  it('of throughput are rates', () => {
    expect(figureOf({ ...MEASURED, figure: { ...FIGURE, value: 938_500_000, unit: 'bps' } })).toMatch(/^93[89].*Mb/)
  })

  it('are missing with a reason', () => {
    const refused = { ...MEASURED, figure: null, refused: 'the test failed' }
    expect([figureOf(refused), remarkOf(refused), lostOf(refused)]).toEqual(['none', 'the test failed', ''])
    expect(remarkOf({ ...MEASURED, figure: { ...FIGURE, note: 'Negative.' } })).toBe('Negative.')
    expect(remarkOf(MEASURED)).toBe('')
  })
})

it('shows ends with their sites, and losses in percent', () => {
  expect(endOf('ps.unl.edu', 'unl.edu')).toBe('ps.unl.edu (unl.edu)')
  expect(endOf('192.0.2.9', null)).toBe('192.0.2.9')
  expect(endOf('', null)).toBe('not named')
  expect(lostOf(MEASURED)).toBe('2 %')
})
