import { describe, expect, it } from 'vitest'

import type { FeedSecond } from './api'
import { bySite, deadlineOf, shareInTime } from './deadline'

function second(site: string, at: number, counts: Partial<FeedSecond> = {}): FeedSecond {
  const none = { stored: 0, late_at_hub: 0, late_at_site: 0, lost: 0, reordered: 0, delay: null, jitter_ms: null }
  return { site, second: at, at: '2026-01-01T00:00:00Z', ...none, ...counts }
}

describe('the field of a deadline', () => {
  it('is empty for an ordinary feed, and takes whole milliseconds up to a day', () => {
    expect(['', ' ', '500', '86400000'].map(deadlineOf)).toEqual([null, null, 500, 86_400_000])
    expect(['0', '-1', '1.5', 'soon', '86400001'].map(deadlineOf)).toEqual(Array(5).fill(undefined))
  })
})

describe('seconds', () => {
  it('are grouped by site, the oldest first', () => {
    const rows = bySite([second('b', 3), second('a', 3, { stored: 1 }), second('a', 2, { stored: 1, lost: 1 })])
    expect(rows.map((row) => [row.site, row.seconds.map((one) => one.second)])).toEqual([
      ['a', [2, 3]],
      ['b', [3]],
    ])
    expect(rows[0]?.inTime).toEqual([0.5, 1])
  })

  it('have the share of records in time', () => {
    expect(shareInTime(second('a', 1, { stored: 3, late_at_hub: 1, late_at_site: 1, lost: 1 }))).toBe(0.5)
    expect(shareInTime(second('a', 1))).toBe(1)
  })
})
