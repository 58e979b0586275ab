import { describe, expect, it } from 'vitest'
import type { Stall, TracedConnection } from './api'
import { captionOf, plotOf, SIZE } from './sequence'

const BEGUN_MS = Date.parse('2026-01-02T03:04:05.250Z')
const VARIABLES = ['total_retrans', 'bytes_acked']

function at(seconds: number): string {
  return new Date(BEGUN_MS + seconds * 1000).toISOString()
}

function sample(seconds: number, acked: number | null, resent: number | null = 0): (number | null)[] {
  return [(BEGUN_MS + seconds * 1000) * 1000, resent, acked]
}

function stall(from_s: number, to_s: number, ended = true): Stall {
  return { begun_at: at(from_s), until: at(to_s), waiting_bytes: 1200, ended }
}

function connection(samples: (number | null)[][], ...stalls: Stall[]): TracedConnection {
  return { local: '192.0.2.1:7370', peer: '192.0.2.9:40000', role: 'session', samples, verdict: null, stalls }
}

const width = SIZE.right - SIZE.left
const height = SIZE.bottom - SIZE.top

describe('a stall', () => {
  it('is drawn where and as long as it was', () => {
    const plot = plotOf(connection([sample(0, 100), sample(10, 500)], stall(2, 3.04), stall(6, 10, false)), VARIABLES)
    const [first, second] = plot?.stalls ?? []
    expect(first?.x).toBeCloseTo(SIZE.left + width * 0.2)
    expect(first?.width).toBeCloseTo(width * 0.104)
    expect(first?.seconds).toBeCloseTo(1.04)
    expect(first?.sentence).toBe('Stall of 1.0 s from 03:04:07.250: nothing was acknowledged, 1200 bytes waited')
    expect(second?.width).toBeCloseTo(width * 0.4)
    expect(second?.sentence).toContain('and it may last on')
    expect(second?.row).not.toBe(first?.row)
  })
})

describe('the curve', () => {
  it('has the acknowledged bytes, and marks segments that went again', () => {
    const samples = [sample(0, 1000, 5), sample(1, 1400, 5), sample(2, null, 8), sample(4, 2000, 9)]
    const plot = plotOf(connection(samples), VARIABLES)
    const [first, second, third, last] = plot?.curve ?? []
    expect([first?.x, first?.y]).toEqual([SIZE.left, SIZE.bottom])
    expect(second?.x).toBeCloseTo(SIZE.left + width * 0.25)
    expect(second?.y).toBeCloseTo(SIZE.bottom - height * 0.4)
    expect(third?.y).toBe(second?.y)
    expect([last?.x, last?.y]).toEqual([SIZE.right, SIZE.top])
    expect(plot?.resent.map((one) => one.segments)).toEqual([3, 1])
    expect(plot?.begun).toBe('2026-01-02 03:04:05')
  })

  it('never falls where a counter begins anew', () => {
    const samples = [sample(0, 1000, 7), sample(1, 1500, 7), sample(2, 50), sample(3, 90, 1)]
    const plot = plotOf(connection(samples), VARIABLES)
    const heights = plot?.curve.map((one) => one.y) ?? []
    expect(heights).toEqual([...heights].sort((one, other) => other - one))
    expect(plot?.resent.map((one) => one.segments)).toEqual([1])
  })

  it('is one point for one sample, and nothing for none', () => {
    expect(plotOf(connection([sample(0, 5)]), VARIABLES)?.curve).toHaveLength(1)
    expect(plotOf(connection([sample(0, 5), sample(1, 9)]), [])?.curve.map((one) => one.y)).toEqual([
      SIZE.bottom,
      SIZE.bottom,
    ])
    expect(plotOf(connection([]), VARIABLES)).toBeNull()
    expect(plotOf(connection([[], [null, 1, 2]]), VARIABLES)).toBeNull()
  })

  it('stands on axes of round values', () => {
    const plot = plotOf(connection([sample(0, 0), sample(60, 42_000_000)]), VARIABLES)
    expect(plot?.across.map((tick) => tick.text)).toEqual(['0 s', '10 s', '20 s', '30 s', '40 s', '50 s', '60 s'])
    expect(plot?.up.map((tick) => tick.text)).toEqual(['0 B', '10.0 MB', '20.0 MB', '30.0 MB', '40.0 MB'])
    expect(plotOf(connection([sample(0, 0), sample(0.7, 3)]), VARIABLES)?.across.at(1)?.text).toBe('0.2 s')
    expect(plotOf(connection([sample(0, 0), sample(3600, 3)]), VARIABLES)?.across.at(-1)?.text).toBe('60 min')
  })
})

describe('the caption', () => {
  it('has the verdict and the shares that count', () => {
    const shares = [
      { limit: 'network-loss', share: 0.75 },
      { limit: 'pacing', share: 0.249 },
      { limit: 'receiver', share: 0.001 },
    ]
    const verdict = { leading: 'network-loss', sentence: 'In 75 % of the time it lost.', seconds: 4, shares }
    expect(captionOf(verdict)).toEqual([
      'network-loss: In 75 % of the time it lost.',
      'Of 4.0 s: network-loss 75 %, pacing 25 %.',
    ])
    expect(captionOf(null)).toEqual(['Too few samples to judge.'])
  })
})
