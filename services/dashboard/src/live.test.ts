import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { recorded } from './fixtures/recorded'
import { follow, lastHeard_ms, link, type Link } from './live'

test.each([
  ['connecting', { started_ms: 0, lastEvent_ms: null, lastAnswer_ms: null }, 4000],
  ['stale', { started_ms: 0, lastEvent_ms: null, lastAnswer_ms: null }, 6000],
  ['live', { started_ms: 0, lastEvent_ms: 9000, lastAnswer_ms: null }, 10_000],
  ['polling', { started_ms: 0, lastEvent_ms: 1000, lastAnswer_ms: 9000 }, 10_000],
  ['stale', { started_ms: 0, lastEvent_ms: 1000, lastAnswer_ms: 2000 }, 10_000],
] as const)('the link is %s', (expected, state, now_ms) => expect(link(state, now_ms)).toBe(expected))

test('the hub was last heard by whichever way was later', () => {
  expect(lastHeard_ms({ started_ms: 0, lastEvent_ms: 3, lastAnswer_ms: 8 })).toBe(8)
  expect(lastHeard_ms({ started_ms: 0, lastEvent_ms: null, lastAnswer_ms: null })).toBeNull()
})

/** Stands for the browser's own: opens at once, says what the test makes it say. */
class SpokenEvents extends EventTarget {
  static readonly CLOSED = 2
  static opened: SpokenEvents[] = []
  readyState = 1

  constructor(readonly address: string) {
    super()
    SpokenEvents.opened.push(this)
  }

  say(data: string): void {
    this.dispatchEvent(new MessageEvent('overview', { data }))
  }

  close(): void {
    this.readyState = SpokenEvents.CLOSED
  }
}

let answers: () => Promise<Response>
const links: Link[] = []
const names: string[] = []
const hearer = {
  overview: (overview: { hub: { name: string } }) => names.push(overview.hub.name),
  link: (judged: Link) => links.push(judged),
}
const named = (name: string) => JSON.stringify(recorded({ hub: { ...recorded().hub, name } }))

beforeEach(() => {
  vi.useFakeTimers()
  vi.stubGlobal('EventSource', SpokenEvents)
  vi.stubGlobal('fetch', () => answers())
  vi.spyOn(console, 'warn').mockReturnValue()
  answers = () => Promise.reject(new Error('away'))
  SpokenEvents.opened = []
  links.length = names.length = 0
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('events keep the page live and nothing is asked meanwhile', async () => {
  let asked = 0
  answers = () => Promise.reject(new Error(`asked ${++asked}`))
  const stop = follow(hearer)
  for (let second = 0; second < 10; second += 1) {
    SpokenEvents.opened[0]?.say(named(`event ${second}`))
    await vi.advanceTimersByTimeAsync(1000)
  }
  stop()
  expect(names.at(-1)).toBe('event 9')
  expect(new Set(links)).toEqual(new Set(['live']))
  expect(asked).toBe(0)
})

test('without events the page asks, and says so', async () => {
  answers = () => Promise.resolve(new Response(named('asked')))
  const stop = follow(hearer)
  await vi.advanceTimersByTimeAsync(4000)
  stop()
  expect(names.at(-1)).toBe('asked')
  expect(links.at(-1)).toBe('polling')
})

test('a line that is refused is not waited for', async () => {
  answers = () => Promise.resolve(new Response(named('asked')))
  const stop = follow(hearer)
  SpokenEvents.opened[0]?.close()
  await vi.advanceTimersByTimeAsync(1000)
  stop()
  expect(names).toEqual(['asked'])
})

test('a hub that went away is stale, and found again', async () => {
  const stop = follow(hearer)
  SpokenEvents.opened[0]?.say(named('before'))
  await vi.advanceTimersByTimeAsync(8000)
  expect(links.at(-1)).toBe('stale')
  SpokenEvents.opened[0]?.close()
  await vi.advanceTimersByTimeAsync(1000)
  expect(SpokenEvents.opened).toHaveLength(2)
  SpokenEvents.opened[1]?.say(named('after'))
  await vi.advanceTimersByTimeAsync(1000)
  stop()
  expect(names).toEqual(['before', 'after'])
  expect(links.at(-1)).toBe('live')
})

test('an answer that is no overview changes nothing and does not count as heard', async () => {
  answers = () => Promise.resolve(new Response('<html>sign in</html>'))
  const stop = follow(hearer)
  await vi.advanceTimersByTimeAsync(7000)
  stop()
  expect(names).toEqual([])
  expect(links.at(-1)).toBe('stale')
})
