import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { bodyOf, hubThat, sceneOf } from '../../fixtures/formscene'
import { lineOf } from '../command'
import { Partly } from '../form'
import { approveRequest, refuseRequest } from './request'

beforeEach(() => vi.stubGlobal('location', { hostname: 'hub.example', href: 'https://hub.example/' }))
afterEach(() => vi.unstubAllGlobals())

const FEEDS = sceneOf().overview.feeds.map((one) => one.feed)
const [FIRST = '', SECOND = ''] = FEEDS
const REQUEST = {
  number: 3,
  site: 'unl.edu',
  organisation: 'University',
  contact: 'ops@unl.edu',
  place: '',
  feeds: [FIRST, SECOND, 'UNKNOWN'],
  note: '',
  peer: '192.0.2.1',
  asked_at: '2026-11-30T10:00:00Z',
}

function answers(path: string): unknown {
  if (path.endsWith('access-requests')) return [REQUEST]
  if (path.endsWith('/tokens')) return { token: 'dbt1.x.y' }
  return { site: 'unl.edu', sites_address: ['hub.example:7370'] }
}

test('approval permits the feeds, subscribes the site and shows its token', async () => {
  const asked = hubThat(answers)
  const form = await approveRequest(sceneOf('3'))
  expect(form.start.allow.toSorted()).toEqual([FIRST, SECOND].toSorted())
  expect(form.facts?.map((fact) => fact.name)).toEqual(['Organisation', 'Contact', 'Requested'])
  const values = { ...form.start, allow: ['IDS|DDPLUS', 'NGRID'], answer: 'welcome' }
  expect(form.commands(values).map(lineOf)).toEqual([
    "downburst requests approve 3 --allow 'IDS|DDPLUS' --allow NGRID --answer welcome",
    "downburst subscriptions add unl.edu 'IDS|DDPLUS' NGRID",
    'downburst sites token unl.edu -o unl.edu.token',
  ])
  const outcome = await form.send(values)
  expect(outcome.shown?.[0]?.text).toBe(
    "echo 'dbt1.x.y' > unl.edu.token\n" +
      'downburst-node receive --hub hub.example:7370 --token-file unl.edu.token --dir /data/downburst',
  )
  expect(asked.slice(1).map((one) => one.replace(/ \{.*/, ''))).toEqual([
    'POST ./v1/access-requests/3/approval',
    'POST ./v1/sites/unl.edu/subscriptions',
    'POST ./v1/sites/unl.edu/subscriptions',
    'POST ./v1/sites/unl.edu/tokens',
    'GET ./v1/sites/unl.edu',
  ])
  expect(bodyOf(asked[1])).toEqual({ allow: ['IDS|DDPLUS', 'NGRID'], answer: 'welcome' })
})

test('a feed that is missing here shows why it cannot be permitted', async () => {
  hubThat(answers)
  const form = await approveRequest(sceneOf('3'))
  const allow = form.fields[0]
  const missing = allow?.kind === 'many' ? allow.options.at(-1) : undefined
  expect(missing).toEqual({ value: 'UNKNOWN', label: 'UNKNOWN', off: 'The hub has no such feed.' })
})

test('approval alone is one request', async () => {
  const asked = hubThat(answers)
  const form = await approveRequest(sceneOf('3'))
  const outcome = await form.send({ ...form.start, isSubscribed: false, hasToken: false })
  expect(outcome.shown).toBeUndefined()
  expect(asked).toHaveLength(2)
})

test('after a failure the next try does the rest', async () => {
  let isBroken = true
  const asked = hubThat((path) => (isBroken && path.endsWith('/tokens') ? 503 : answers(path)))
  const form = await approveRequest(sceneOf('3'))
  await expect(form.send(form.start)).rejects.toThrow(Partly)
  await expect(form.send(form.start)).rejects.toThrow('unl.edu is approved. Its enrolment token was not created')
  isBroken = false
  expect((await form.send(form.start)).shown).toHaveLength(1)
  expect(asked.filter((one) => one.includes('/approval'))).toHaveLength(1)
  expect(asked.filter((one) => one.includes('/subscriptions'))).toHaveLength(2)
})

test('a request that was answered already opens no form', async () => {
  hubThat(() => [])
  await expect(approveRequest(sceneOf('3'))).rejects.toThrow('No request 3 is pending')
})

test('a refusal needs a reason', async () => {
  const asked = hubThat(answers)
  const form = await refuseRequest(sceneOf('3'))
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst requests refuse 3 …'])
  expect(form.commands({ answer: 'ask your hub' }).map(lineOf)).toEqual([
    "downburst requests refuse 3 'ask your hub'",
  ])
  await form.send({ answer: 'ask your hub' })
  expect(asked[1]).toBe('POST ./v1/access-requests/3/refusal {"answer":"ask your hub"}')
})
