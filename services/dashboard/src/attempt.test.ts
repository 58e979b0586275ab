import { afterEach, expect, test, vi } from 'vitest'

import { Attempt } from './attempt.svelte'

afterEach(() => vi.useRealTimers())

test('an error is shown until something else is tried', async () => {
  const attempt = new Attempt()
  await attempt.do(() => Promise.reject(new Error('there is no receiver ops')), 'done')
  expect([attempt.problem, attempt.notice]).toEqual(['there is no receiver ops', ''])
  await attempt.do(() => Promise.resolve(), 'Recipient ops removed.')
  expect([attempt.problem, attempt.notice]).toEqual(['', 'Recipient ops removed.'])
})

test('a look that succeeds clears the error of an earlier one, and no other', async () => {
  vi.useFakeTimers()
  const attempt = new Attempt()
  const work = vi.fn(() => Promise.resolve()).mockRejectedValueOnce(new Error('away'))
  const stop = attempt.follow(1000, work)
  await vi.advanceTimersByTimeAsync(500)
  expect(attempt.problem).toBe('away')
  await vi.advanceTimersByTimeAsync(1000)
  expect(attempt.problem).toBe('')
  await attempt.do(() => Promise.reject(new Error('refused')))
  await vi.advanceTimersByTimeAsync(1000)
  expect(attempt.problem).toBe('refused')
  stop()
})

test('it looks at once and again until it is stopped', async () => {
  vi.useFakeTimers()
  const attempt = new Attempt()
  const work = vi.fn(() => Promise.reject(new Error('away')))
  const stop = attempt.follow(1000, work)
  await vi.advanceTimersByTimeAsync(2500)
  expect([work.mock.calls.length, attempt.problem]).toEqual([3, 'away'])
  stop()
  await vi.advanceTimersByTimeAsync(5000)
  expect(work).toHaveBeenCalledTimes(3)
})
