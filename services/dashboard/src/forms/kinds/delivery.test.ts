import { afterEach, expect, test, vi } from 'vitest'

import { bodyOf, hubThat, sceneOf } from '../../fixtures/formscene'
import { lineOf } from '../command'
import { Partly } from '../form'
import { moreTraffic } from '../traffic'
import { changeOf, pinTransport } from './pin'
import { addSubscriptions } from './subscription'

afterEach(() => vi.unstubAllGlobals())

const TAKEN = [{ id: 1, site: 'unl.edu', feed: 'IDS', pattern: '.*', not_pattern: null }]
const VOLUME = {
  hours_seen: 6,
  feeds: [{ feed: 'NGRID', products_per_hour: 1200.4, mean_bytes_per_hour: 3e9 }],
}

function answers(path: string): unknown {
  if (path.includes('volume')) return VOLUME
  if (path.includes('pattern-test')) return { matched: 12, matched_bytes: 5e6, complete: false }
  return TAKEN
}

test('one site is subscribed to many feeds', async () => {
  const asked = hubThat(answers)
  const form = await addSubscriptions(sceneOf('unl.edu'))
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst subscriptions add unl.edu …'])
  const ordered = { start: '6h', in_order: true, hold_s: '3' }
  const values = { ...form.start, ...ordered, feeds: ['IDS|DDPLUS', 'NGRID'], pattern: '^W' }
  expect(form.commands(values).map(lineOf)).toEqual([
    "downburst subscriptions add unl.edu 'IDS|DDPLUS' NGRID --pattern '^W' --start 6h --in-order --hold 3",
  ])
  expect((await form.send(values)).notice).toBe('unl.edu is subscribed to IDS|DDPLUS, NGRID.')
  expect(bodyOf(asked[2])).toEqual({ feed: 'NGRID', pattern: '^W', start: '6h', in_order: true, hold_s: 3 })
})

test('feeds that are refused stay chosen, the others are subscribed', async () => {
  const form = await addSubscriptions((hubThat(answers), sceneOf('unl.edu')))
  let count = 0
  hubThat(() => ((count += 1) === 1 ? 409 : {}))
  const refused = await form.send({ ...form.start, feeds: ['IDS', 'NGRID'] }).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(Partly)
  expect((refused as Partly).rest).toEqual({ ...form.start, feeds: ['IDS'] })
  expect((refused as Partly).message).toContain('unl.edu is subscribed to NGRID. IDS was refused')
})

test('the preview has the measured traffic, and nothing for what is taken already', async () => {
  hubThat(answers)
  const form = await addSubscriptions(sceneOf('unl.edu'))
  expect(await form.preview?.(form.start)).toBeNull()
  const preview = await form.preview?.({ ...form.start, feeds: ['IDS', 'NGRID', 'QUIET'] })
  expect(preview?.sentence).toBe('1200 products with 3.00 GB an hour more, as in the last 6 h.')
  expect(preview?.rows).toEqual([
    { name: 'IDS (taken already)', cells: ['0', '0 B'] },
    { name: 'NGRID', cells: ['1200', '3.00 GB'] },
    { name: 'QUIET', cells: ['0', '0 B'] },
  ])
})

test('a pattern is tried on the last hour, and an unfinished search is a lower bound', async () => {
  const asked = hubThat(answers)
  const preview = await moreTraffic({ feeds: ['NGRID'], pattern: '^W', not_pattern: null }, [])
  expect(preview?.sentence).toBe('At least 12 products with 5.00 MB an hour more, as in the last hour.')
  expect(asked).toContain('POST ./v1/feeds/NGRID/pattern-test {"pattern":"^W","hours":1}')
})

test('what was not measured is no zero', async () => {
  hubThat((path) => (path.includes('volume') ? { hours_seen: 0, feeds: [] } : []))
  const preview = await moreTraffic({ feeds: ['NGRID'], pattern: null, not_pattern: null }, [])
  expect(preview?.sentence).toBe('The hub has not measured these feeds yet.')
  expect(preview?.rows[0]?.cells).toEqual(['not measured', '–'])
})

const PLANNED = sceneOf().overview.feeds.find((one) => (one.plan?.candidates.length ?? 0) > 1)

test('a pin shows the plan before and after', async () => {
  const plan = PLANNED?.plan
  if (!PLANNED || !plan) throw new Error('the recorded overview has no plan with candidates')
  const asked = hubThat(() => ({}))
  const form = pinTransport(sceneOf(PLANNED.feed))
  const other = plan.candidates.find((one) => one.transport !== plan.transport)?.transport ?? ''
  const preview = await form.preview?.({ transport: other })
  expect(preview?.rows[0]?.cells).toEqual([plan.transport, other])
  expect(form.start.transport).toBe(plan.transport)
  expect(lineOf(form.commands({ transport: other })[0] ?? [])).toMatch(/^downburst plans pin \S+ \S+ --by anna$/)
  await form.send({ transport: other })
  expect(asked).toEqual([`PUT ./v1/feeds/${encodeURIComponent(PLANNED.feed)}/pin {"transport":"${other}"}`])
})

test('a pinned feed can be given back to the hub', async () => {
  const scene = sceneOf(PLANNED?.feed)
  const feeds = scene.overview.feeds.map((one) => (one.plan ? { ...one, plan: { ...one.plan, pinned: true } } : one))
  const form = pinTransport({ ...scene, overview: { ...scene.overview, feeds } })
  const field = form.fields[0]
  expect(field?.kind === 'choice' && field.options.at(-1)?.label).toBe('chosen by the hub')
  expect(lineOf(form.commands({ transport: 'hub' })[0] ?? [])).toMatch(/^downburst plans unpin /)
  const asked = hubThat(() => null)
  await form.send({ transport: 'hub' })
  expect(asked[0]).toMatch(/^DELETE .*\/pin$/)
})

test('a transport that the plan did not consider has no figures', () => {
  const plan = PLANNED?.plan
  if (!plan) throw new Error('the recorded overview has no plan with candidates')
  const bare = { ...plan, candidates: [] }
  expect(changeOf(bare, 'multicast')).toMatchObject({ sentence: 'The plan did not consider multicast.', rows: [] })
})
