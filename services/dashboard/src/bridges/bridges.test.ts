import { describe, expect, it, test } from 'vitest'

import type { AnnouncedProduct, Bridge, BrokerState, CentreAccount, Publisher } from '../api'
import {
  behindTone,
  budgetOf,
  centresInOrder,
  hostOf,
  lastAnswer,
  lastMessage,
  latencies,
  newest,
  previewVerdict,
  publisherState,
  rate,
  seconds,
  sourceState,
  stateOf,
  timesOf,
  toneOf,
} from './bridges'

const NOW = '2026-11-29T18:00:00Z'
const BROKER: BrokerState = {
  url: 'mqtts://one.example:8883',
  user: 'everyone',
  mqtt: 5,
  connected_at: '2026-11-29T12:00:00Z',
  session_present: true,
  bound: 2,
  refused: [],
  last_at: '2026-11-29T17:59:58Z',
  fault: '',
  health: 'good',
  sentence: 'connected',
  messages_per_s: 33.3,
  delay_s: 1.5,
}
const SILENT: BrokerState = {
  ...BROKER,
  url: 'wss://two.example/mqtt',
  health: 'warning',
  sentence: 'no message for 3 h',
  last_at: '2026-11-29T15:00:00Z',
}
const AWAY: BrokerState = {
  ...BROKER,
  connected_at: null,
  health: 'error',
  sentence: 'the broker refuses user a: not authorized',
  last_at: null,
}
const PACE = { behind_s: 2, oldest_coming_at: null, products: 400, p50_s: 1.2, p99_s: 9 }
const BRIDGE: Bridge = {
  bridge: 'dwd',
  feed: 'WIS2',
  brokers: [BROKER, SILENT],
  topics: ['cache/a/wis2/#'],
  takes_recommended: false,
  bytes_per_day: 100_000,
  may_ask_private: false,
  enabled: true,
  created_at: NOW,
  replay_url: null,
  logins: [],
  products: { coming: 0, waiting: 0, held: 0, failed: 0 },
  advice: [],
  pace: PACE,
}
const CENTRE: CentreAccount = {
  centre: 'de-dwd',
  day: '2026-11-29',
  products: 9,
  bytes: 95_000,
  copies: 0,
  refused: 0,
  failed: 0,
  coming: 0,
  waiting: 0,
  waiting_bytes: 0,
}

describe('a broker', () => {
  it('has its time of connection, or the reason for which it has none', () => {
    expect(stateOf(BROKER, NOW)).toBe('connected for 6 h')
    expect(stateOf(SILENT, NOW)).toBe('no message for 3 h, connected for 6 h')
    expect(stateOf(AWAY, NOW)).toBe('the broker refuses user a: not authorized')
  })

  it('that is silent is not green', () => {
    expect([BROKER, SILENT, AWAY].map(toneOf)).toEqual(['good', 'warn', 'bad'])
    expect(toneOf({ ...BROKER, health: 'off' })).toBe('quiet')
  })

  it('has a last message, or none', () => {
    expect(lastMessage(SILENT, NOW)).toBe('3 h ago')
    expect(lastMessage({ ...BROKER, last_at: null }, NOW)).toBe('none since the connection')
    expect(lastMessage(AWAY, NOW)).toBe('–')
  })
})

test('rates and times have the unit that reads best', () => {
  expect([rate(33.33), rate(0.5), rate(0), rate(null)]).toEqual(['33.3/s', '30/min', '0/s', '–'])
  expect([seconds(0.25), seconds(9), seconds(600), seconds(null)]).toEqual(['250 ms', '9.00 s', '10 min', '–'])
})

describe('a source', () => {
  const state = (...brokers: BrokerState[]) => sourceState({ ...BRIDGE, brokers })

  it('is well if all of its brokers are', () => {
    expect(state(BROKER, BROKER)).toEqual({ tone: 'good', sentence: '2 brokers connected, all topics bound.' })
    expect(state(BROKER).sentence).toContain('1 broker connected')
  })

  it('has a warning while one broker stands in for another', () => {
    expect(state(BROKER, AWAY)).toEqual({
      tone: 'warn',
      sentence: '1 of 2 brokers in order. one.example:8883: the broker refuses user a: not authorized.',
    })
  })

  it('names a host once', () => {
    const sentence = 'one.example takes no connection at port 8883'
    expect(state({ ...AWAY, sentence }).sentence).toBe(`No broker in order. ${sentence}.`)
  })

  it('is never green by silence', () => {
    expect(state(SILENT, SILENT)).toEqual({
      tone: 'warn',
      sentence: 'No broker in order. two.example: no message for 3 h.',
    })
    expect(state(SILENT, AWAY).tone).toBe('warn')
    expect(state(AWAY).tone).toBe('bad')
    expect(sourceState({ ...BRIDGE, enabled: false }).tone).toBe('quiet')
  })

  it('has its lateness', () => {
    expect([2, 90, null].map((behind_s) => behindTone({ ...PACE, behind_s }))).toEqual(['good', 'warn', 'quiet'])
    expect(latencies(PACE)).toBe('p50 1.20 s, p99 9.00 s')
    expect(latencies({ ...PACE, products: 3 })).toContain('only 3 products')
    expect(latencies({ ...PACE, products: 0 })).toContain('not measured')
  })
})

test('centres that wait come first, with their bytes beside the budget', () => {
  const above = { ...CENTRE, centre: 'fr-meteofrance', bytes: 10, waiting: 3, waiting_bytes: 255_000 }
  expect(centresInOrder([CENTRE, { ...CENTRE, bytes: 99_999 }, above]).map((one) => one.bytes)).toEqual([
    10, 99_999, 95_000,
  ])
  expect(budgetOf(CENTRE, 100_000)).toEqual({ used: '95.0 kB of 100 kB', share: 0.95, waits: '' })
  expect(budgetOf(above, 100_000).waits).toBe('3 products (255 kB)')
  expect(budgetOf(CENTRE, null)).toEqual({ used: '95.0 kB', share: null, waits: '' })
})

test('holes have their times', () => {
  const hole = { number: 1, broker: 'x', reason: '', filled_at: null, filled_by: null, fault: '' }
  const from_at = '2026-11-29T16:02:11.123Z'
  expect(timesOf({ ...hole, from_at, to_at: '2026-11-29T16:05:40Z' })).toBe('2026-11-29 16:02:11 to 16:05:40 UTC')
  expect(timesOf({ ...hole, from_at, to_at: '2026-11-30T01:00:00Z' })).toContain('to 2026-11-30 01:00:00 UTC')
})

describe('a publisher', () => {
  const PRODUCTS = { waiting: 0, announced: 4, refused: 0, expired: 0, looked_at: 9, behind: 0, refusal: '' }
  const PUBLISHER: Publisher = {
    publisher: 'synop',
    feed: 'NGRID',
    centre: 'us-unidata',
    topic: 'core/weather',
    metadata_id: 'urn:wmo:md:us-unidata:synop',
    broker: BROKER,
    base_url: 'https://hub.example',
    pattern: '.*',
    media_type: 'application/bufr',
    by_heading: false,
    republishes: false,
    enabled: true,
    dataset: null,
    created_at: NOW,
    products: PRODUCTS,
  }

  it('has the last answer of its broker with the reason', () => {
    expect(lastAnswer(PUBLISHER, NOW)).toEqual({ tone: 'good', sentence: 'reason 0 (success), 2 s ago' })
    const refusal = 'the broker refuses it: not authorized (135)'
    expect(lastAnswer({ ...PUBLISHER, products: { ...PRODUCTS, refusal } }, NOW)).toEqual({
      tone: 'bad',
      sentence: refusal,
    })
    expect(lastAnswer({ ...PUBLISHER, broker: AWAY }, NOW).sentence).toBe('none since the connection')
    expect(lastAnswer({ ...PUBLISHER, enabled: false }, NOW)).toEqual({ tone: 'quiet', sentence: '–' })
  })

  it('says its state', () => {
    expect(publisherState(PUBLISHER, NOW)).toEqual({ tone: 'good', sentence: 'Connected for 6 h.' })
    expect(publisherState({ ...PUBLISHER, broker: AWAY }, NOW).tone).toBe('bad')
    expect(publisherState({ ...PUBLISHER, enabled: false }, NOW).sentence).toContain('Switched off')
  })

  it('shows the verdict on its next notification', () => {
    const made: AnnouncedProduct = {
      product_id: 'a',
      sequence: 1,
      data_id: 'us-unidata/a',
      id: '1',
      kind: 'canonical',
      topic: 't',
      step: 'waiting',
      made_at: NOW,
      announced_at: null,
      reason: '',
      notification: {},
    }
    expect(previewVerdict(made).tone).toBe('good')
    const refused = { ...made, notification: null, reason: 'it has no heading' }
    expect(previewVerdict(refused).sentence).toBe('a would not be announced: it has no heading.')
    const older = { ...made, id: '2', made_at: '2026-11-29T17:00:00Z' }
    expect(newest([older, made], 1)).toEqual([made])
  })
})

test('a broker is named by its host', () => {
  expect(['mqtts://one.example', 'wss://two.example:444/mqtt', 'x'].map(hostOf)).toEqual([
    'one.example',
    'two.example:444',
    'x',
  ])
})
