import { afterEach, expect, test, vi } from 'vitest'

import { bodyOf, hubThat, sceneOf } from '../../fixtures/formscene'
import { problemsOf } from '../checks'
import { lineOf } from '../command'
import { shownFields } from '../form'
import { removeFeed, removeSite, removeSource, removeUser } from './removal'
import { changeUser } from './user'

afterEach(() => vi.unstubAllGlobals())

test('a feed is removed once its name is typed', async () => {
  const asked = hubThat((path) => (path.includes('subscriptions') ? [] : {}))
  const form = await removeFeed(sceneOf('IDS|DDPLUS'))
  expect(problemsOf(form.fields, { name: 'IDS' })).toEqual({ name: 'Type IDS|DDPLUS to remove it.' })
  expect(problemsOf(form.fields, { name: 'IDS|DDPLUS' })).toEqual({})
  expect(form.commands(form.start).map(lineOf)).toEqual(["downburst feeds remove 'IDS|DDPLUS' --yes"])
  const outcome = await form.send({ name: 'IDS|DDPLUS' })
  expect(outcome).toEqual({ notice: 'Feed IDS|DDPLUS is removed.', next: '#/feeds' })
  expect(asked.at(-1)).toBe('DELETE ./v1/feeds/IDS%7CDDPLUS')
})

test('the preview of a removal names the deliveries that end', async () => {
  const sentenceOf = async (sites: string[]) => {
    hubThat((path) => (path.includes('subscriptions') ? sites.map((site) => ({ site })) : {}))
    return (await (await removeFeed(sceneOf('NGRID'))).preview?.({ name: '' }))?.sentence
  }
  expect(await sentenceOf([])).toBe('No site takes NGRID.')
  expect(await sentenceOf(['unl.edu', 'cornell.edu', 'unl.edu'])).toBe('No longer sent to cornell.edu, unl.edu.')
  const many = Array.from({ length: 11 }, (_, number) => `s${10 + number}`)
  expect(await sentenceOf(many)).toBe('No longer sent to s10, s11, s12, s13, s14, s15, s16, s17 and 3 more.')
  hubThat(() => ({ subscriptions: [{ feed: 'NGRID' }, { feed: 'HDS' }, { feed: 'NGRID' }] }))
  const site = await removeSite(sceneOf('unl.edu'))
  expect((await site.preview?.({ name: '' }))?.sentence).toBe('unl.edu no longer receives HDS, NGRID.')
})

test('a site is removed by request and by command', async () => {
  const asked = hubThat(() => ({ subscriptions: [] }))
  const form = await removeSite(sceneOf('unl.edu'))
  expect(form.isDangerous).toBe(true)
  expect((await form.preview?.({ name: '' }))?.sentence).toBe('unl.edu takes no feed.')
  expect(problemsOf(form.fields, { name: 'unlxedu' })).toEqual({ name: 'Type unl.edu to remove it.' })
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst sites remove unl.edu --yes'])
  expect((await form.send({ name: 'unl.edu' })).next).toBe('#/sites')
  expect(asked[1]).toBe('DELETE ./v1/sites/unl.edu')
})

test.each([
  ['upstreams/unidata', 'downburst upstreams remove unidata --yes'],
  ['ldm/sources/near', 'downburst ldm forget near'],
  ['ldm/accepts/7', 'downburst ldm refuse 7'],
])('the source %s is removed', async (path, command) => {
  const asked = hubThat((asked) => {
    if (asked.endsWith('upstreams')) return [{ upstream: 'unidata', feeds: [] }]
    return asked.endsWith('sources') ? [{ source: 'near', feeds: 'HDS' }] : [{ id: 7, host: '^ldm', feeds: 'EXP' }]
  })
  const form = await removeSource()
  expect(form.commands({ source: path }).map(lineOf)).toEqual([command])
  await form.send({ source: path })
  expect(asked.at(-1)).toBe(`DELETE ./v1/${path}`)
})

test('a hub without sources says so', async () => {
  hubThat(() => [])
  await expect(removeSource()).rejects.toThrow('This hub has no upstream, no LDM source and no host that may push.')
})

test('a user is removed', async () => {
  const asked = hubThat(() => null)
  const form = removeUser(sceneOf('anna@example.edu'))
  expect(form.commands({}).map(lineOf)).toEqual(['downburst users remove anna@example.edu --yes'])
  expect((await form.send({})).notice).toBe('User anna@example.edu is removed.')
  expect(asked).toEqual(['DELETE ./v1/users/anna%40example.edu'])
})

test('rights of a user change by request and by command', async () => {
  const asked = hubThat(() => ({ role: 'viewer', site: null, active: true, issuer: null }))
  const form = await changeUser(sceneOf('bo'))
  const values = { role: 'site', site: 'unl.edu', active: false }
  expect(form.commands(values).map(lineOf)).toEqual(['downburst users set bo --role site --site unl.edu --inactive'])
  await form.send(values)
  expect(bodyOf(asked[1])).toEqual({ role: 'site', site: 'unl.edu', active: false })
  expect(shownFields(form, form.start).map((field) => field.name)).toEqual(['role', 'active'])
  await expect(form.send(form.start)).rejects.toThrow('No right is different yet.')
})

test('of a user of a provider only the access changes', async () => {
  hubThat(() => ({ role: 'operator', site: null, active: true, issuer: 'https://id.example.edu' }))
  const form = await changeUser(sceneOf('bo'))
  expect(form.facts).toEqual([{ name: 'Role', value: 'operator, by the groups at https://id.example.edu' }])
  expect(shownFields(form, form.start).map((field) => field.name)).toEqual(['active'])
  expect(form.commands({ ...form.start, active: false }).map(lineOf)).toEqual(['downburst users set bo --inactive'])
})
