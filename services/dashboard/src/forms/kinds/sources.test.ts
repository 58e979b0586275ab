import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { bodyOf, hubThat, sceneOf } from '../../fixtures/formscene'
import { problemsOf } from '../checks'
import { lineOf } from '../command'
import { shownFields } from '../form'
import { feedObjective, siteObjective } from './objective'
import { acceptLdm, addUpstream, askLdm } from './source'
import { inviteUser } from './user'

beforeEach(() => vi.stubGlobal('location', { href: 'https://hub.example/page' }))
afterEach(() => vi.unstubAllGlobals())

test('an upstream takes feeds with a token that no command shows', async () => {
  const asked = hubThat(() => ({ upstream: 'unidata', feeds: [] }))
  const form = addUpstream(sceneOf())
  const token = `dbt1.${'a'.repeat(64)}.x_y`
  const values = { upstream: 'unidata', address: 'idd.example.edu:7370', token, feeds: ['NGRID'] }
  expect(form.commands(values).map(lineOf)).toEqual([
    'downburst upstreams add unidata --from idd.example.edu:7370 --token-file unidata.token --feed NGRID',
  ])
  expect(problemsOf(form.fields, values)).toEqual({})
  expect(Object.keys(problemsOf(form.fields, { ...values, address: 'idd', token: 'secret' }))).toEqual([
    'address',
    'token',
  ])
  await form.send(values)
  expect(bodyOf(asked[0])).toEqual(values)
})

test('LDMs are asked in the order of preference', async () => {
  const asked = hubThat(() => ({ feeds: 'NGRID', upstreams: [] }))
  const form = askLdm()
  const values = { ...form.start, source: 'unidata', feeds: 'IDS|DDPLUS', upstreams: 'a.edu, b.edu:388' }
  expect(form.commands(values).map(lineOf)).toEqual(["downburst ldm ask unidata 'IDS|DDPLUS' a.edu b.edu:388"])
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst ldm ask … … …'])
  await form.send({ ...values, max_age_s: '60' })
  expect(bodyOf(asked[0])).toEqual({
    source: 'unidata',
    feeds: 'IDS|DDPLUS',
    upstreams: ['a.edu', 'b.edu:388'],
    max_age_s: 60,
  })
})

test('an LDM may push', async () => {
  const asked = hubThat(() => ({ host: 'x', feeds: 'EXP' }))
  const form = acceptLdm()
  const values = { feeds: 'EXP', host: '^ldm\\.edu$', pattern: '^rtstats' }
  expect(form.commands(values).map(lineOf)).toEqual(["downburst ldm accept EXP '^ldm\\.edu$' --pattern '^rtstats'"])
  await form.send(values)
  expect(bodyOf(asked[0])).toEqual(values)
})

test('the objective of a feed begins with that of today', async () => {
  const asked = hubThat(() => ({ objective_ms: 5000 }))
  const form = await feedObjective(sceneOf('NGRID'))
  expect(form.start).toEqual({ objective_ms: '5000' })
  expect(form.commands({ objective_ms: '500' }).map(lineOf)).toEqual(['downburst objectives set NGRID 500'])
  expect((await form.send({ objective_ms: '500' })).notice).toBe('The objective of NGRID is 500 ms.')
  expect(asked[1]).toBe('PATCH ./v1/feeds/NGRID {"objective_ms":500}')
})

test('an objective at one site has a share and a period', async () => {
  const asked = hubThat((path) =>
    path.includes('?site=') ? [] : { feed: 'NGRID', objective_ms: 2000, quantile: 0.95, minutes: 30 },
  )
  const form = await siteObjective(sceneOf('unl.edu'))
  const values = { feed: 'NGRID', objective_ms: '2000', percentile: '95', minutes: '30' }
  expect(form.commands(values).map(lineOf)).toEqual([
    'downburst objectives set NGRID 2000 --site unl.edu --quantile 0.95 --minutes 30',
  ])
  expect((await form.send(values)).notice).toContain('Objective of NGRID at unl.edu: 95 % within 2.00 s')
  expect(asked[1]).toBe(
    'PUT ./v1/feeds/NGRID/objectives/unl.edu {"objective_ms":2000,"quantile":0.95,"minutes":30}',
  )
  expect(problemsOf(form.fields, form.start)).toEqual({ objective_ms: 'Latency, from log to log is needed.' })
})

test('a user is invited by a link', async () => {
  const asked = hubThat(() => ({ user: 'bo', fragment: '#invitation=dbl_x' }))
  const form = inviteUser(sceneOf())
  const viewer = { ...form.start, user: 'anna' }
  expect(shownFields(form, viewer).map((field) => field.name)).toEqual(['user', 'role'])
  expect(form.commands(viewer).map(lineOf)).toEqual(['downburst users add anna --role viewer'])
  const site = { user: 'bo', role: 'site', site: 'unl.edu' }
  expect(form.commands(site).map(lineOf)).toEqual(['downburst users add bo --role site --site unl.edu'])
  const outcome = await form.send(site)
  expect(outcome.shown?.[0]?.text).toBe('https://hub.example/page#invitation=dbl_x')
  expect(bodyOf(asked[0])).toEqual(site)
  await form.send(viewer)
  expect(bodyOf(asked[1])).toEqual({ user: 'anna', role: 'viewer' })
})
