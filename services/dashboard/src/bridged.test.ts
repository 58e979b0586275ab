import { describe, expect, it } from 'vitest'
import type { Announcement, Wis2Statement } from './api'
import { announcements, arrival, laidOut } from './bridged'

const STATEMENT: Wis2Statement = {
  topic: 'cache/a/wis2/de-dwd/data/core/weather',
  centre: 'de-dwd',
  notification_id: '31e9d66a-cd83-4174-9429-000000000001',
  data_id: 'de-dwd/1',
  metadata_id: null,
  kind: 'canonical',
  published_at: '2026-11-23T04:00:00Z',
  url: 'https://files.example/1',
  shortened: false,
  heard: { bridge: 'dwd', heard_at: '2026-11-23T04:00:02Z', settled_at: '2026-11-23T04:00:02.6Z' },
}

function way(statement: Wis2Statement | null, announced: Announcement[] = []) {
  return { bridged: { properties: null, statement, announced }, stored_at: '2026-11-23T04:00:02.5Z' }
}

describe('the way of a product to this hub', () => {
  it('leads back to its notification, with the time of each step', () => {
    expect(arrival(way(STATEMENT))).toBe(
      'Published to WIS2 by de-dwd at 2026-11-23 04:00:00 UTC, heard by dwd 2.00 s later, stored 500 ms after that',
    )
  })

  it('has no more than its publication where another hub heard it, and is none without a notification', () => {
    expect(arrival(way({ ...STATEMENT, heard: null }))).toContain('stored here 2.50 s later')
    expect(arrival(way(null))).toBeNull()
  })
})

describe('announcements', () => {
  it('are named with their time, or with the reason against them', () => {
    const one = {
      publisher: 'synop',
      notification_id: 'x',
      data_id: 'y',
      kind: 'canonical',
      topic: 't',
      step: 'announced',
      announced_at: '2026-11-23T04:00:03Z',
      reason: '',
    }
    const refused = { ...one, step: 'refused', announced_at: null, reason: 'it is recommended data' }
    expect(announcements(way(null, [one, refused, { ...refused, step: 'waiting', reason: '' }]))).toEqual([
      'Announced to WIS2 by synop at 2026-11-23 04:00:03 UTC',
      'Publisher synop: refused (it is recommended data)',
      'Publisher synop: waiting',
    ])
  })
})

describe('properties', () => {
  it('are laid out if they are JSON, and shown as they came if not', () => {
    expect(laidOut('{"a":1}')).toBe('{\n  "a": 1\n}')
    expect(laidOut('<a/>')).toBe('<a/>')
  })
})
