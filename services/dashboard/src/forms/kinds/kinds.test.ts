import { afterEach, expect, test, vi } from 'vitest'

import { bodyOf, hubThat, sceneOf } from '../../fixtures/formscene'
import { lineOf } from '../command'
import { addFeed, changeFeed } from './feed'
import { allowFeeds, limitFeed } from './permission'
import { changeSite } from './properties'
import { addSite } from './site'

afterEach(() => vi.unstubAllGlobals())

test('a feed is added by request and by command', async () => {
  const asked = hubThat(() => ({ feed: 'IDS' }))
  const form = addFeed()
  const values = { ...form.start, feed: ' IDS|DDPLUS ', class: 'warning', objective_ms: '500' }
  expect(form.commands(values).map(lineOf)).toEqual([
    "downburst feeds add 'IDS|DDPLUS' --class warning --objective-ms 500",
  ])
  await form.send(values)
  expect(asked).toEqual(['POST ./v1/feeds {"feed":"IDS|DDPLUS","class":"warning","objective_ms":500}'])
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst feeds add … --class grid'])
})

test('a site is added with what is known of it', async () => {
  const asked = hubThat(() => ({ site: 'unl.edu' }))
  const form = addSite(sceneOf())
  await form.send({ ...form.start, site: 'unl.edu' })
  expect(asked).toEqual(['POST ./v1/sites {"site":"unl.edu","multicast":true}'])
  const values = {
    ...form.start,
    site: 'unl.edu',
    organisation: 'University of Nebraska',
    latitude: '40.8',
    longitude: '-96.7',
    access_rate_mbps: '200',
    isLimited: true,
    allow: ['IDS', 'NGRID'],
    multicast: false,
  }
  expect(form.commands(values).map(lineOf)).toEqual([
    "downburst sites add unl.edu --organisation 'University of Nebraska' --latitude 40.8 --longitude -96.7 " +
      '--access-rate-bps 200000000 --allow IDS --allow NGRID --no-multicast',
  ])
  await form.send(values)
  expect(bodyOf(asked[1])).toEqual({
    site: 'unl.edu',
    organisation: 'University of Nebraska',
    place: { latitude: 40.8, longitude: -96.7 },
    access_rate_bps: 200e6,
    allow: ['IDS', 'NGRID'],
    multicast: false,
  })
})

const NGRID = {
  feed: 'NGRID',
  class: 'grid',
  objective_ms: 5000,
  retention_hours: 2,
  retention_bytes: 1e10,
  max_product_bytes: 4294967296,
  duplicate_rule: 'id-and-content',
  durability: 'process',
  ldm_feed_type: 'NGRID',
  ldm_pattern: '^nam',
}

test('only what differs is changed', async () => {
  const asked = hubThat(() => NGRID)
  const form = await changeFeed(sceneOf('NGRID'))
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst feeds set NGRID'])
  await expect(form.send(form.start)).rejects.toThrow('No property is different yet.')
  const values = { ...form.start, retention_hours: '6', durability: 'power', ldm_pattern: '' }
  expect(form.commands(values).map(lineOf)).toEqual([
    "downburst feeds set NGRID --retention-hours 6 --durability power --ldm-pattern '.*'",
  ])
  await form.send(values)
  expect(asked[1]).toBe('PATCH ./v1/feeds/NGRID {"retention_hours":6,"durability":"power","ldm_pattern":".*"}')
})

test('a feed without feed types is none of LDM', async () => {
  const asked = hubThat(() => NGRID)
  const form = await changeFeed(sceneOf('NGRID'))
  const values = { ...form.start, class: 'bulk', ldm_feed_type: '' }
  expect(form.commands(values).map(lineOf)).toEqual(['downburst feeds set NGRID --class bulk --no-ldm'])
  await form.send(values)
  expect(bodyOf(asked[1])).toEqual({ class: 'bulk', ldm_feed_type: null, ldm_pattern: null })
})

const SITE = {
  site: 'unl.edu',
  organisation: 'University',
  contact: '',
  place: { text: 'Lincoln', latitude: 40.8, longitude: -96.7 },
  access_rate_bps: 200e6,
  multicast: true,
  multicast_interface: '',
  data_connections: null,
  ldm_host: null,
  active: true,
  allow: ['IDS', 'NGRID'],
}

test('the properties of a site change one by one, its place as a whole', async () => {
  const asked = hubThat(() => SITE)
  const form = await changeSite(sceneOf('unl.edu'))
  await expect(form.send(form.start)).rejects.toThrow('No property is different yet.')
  const values = { ...form.start, latitude: '41', access_rate_mbps: '', multicast: false, data_connections: '4' }
  expect(form.commands(values).map(lineOf)).toEqual([
    'downburst sites set unl.edu --place Lincoln --latitude 41 --longitude -96.7 --no-access-rate --no-multicast ' +
      '--data-connections 4',
  ])
  await form.send(values)
  expect(bodyOf(asked[1])).toEqual({
    place: { text: 'Lincoln', latitude: 41, longitude: -96.7 },
    access_rate_bps: null,
    multicast: false,
    data_connections: 4,
  })
  const others = { ...form.start, organisation: '', contact: 'noc@unl.edu', ldm_host: '^ldm', active: false }
  expect(form.commands(others).map(lineOf)).toEqual([
    "downburst sites set unl.edu --organisation '' --contact noc@unl.edu --ldm-host '^ldm' --inactive",
  ])
})

test('a site may take all feeds or those of a list', async () => {
  const asked = hubThat(() => SITE)
  const form = await allowFeeds(sceneOf('unl.edu'))
  expect(form.start).toEqual({ isAll: false, allow: ['IDS', 'NGRID'] })
  expect(form.commands({ isAll: true, allow: [] }).map(lineOf)).toEqual(["downburst sites allow unl.edu '*'"])
  expect(form.commands(form.start).map(lineOf)).toEqual(['downburst sites allow unl.edu IDS NGRID'])
  await form.send({ isAll: true, allow: ['IDS'] })
  expect(asked[1]).toBe('PATCH ./v1/sites/unl.edu {"allow":["*"]}')
})

test('a part of a feed replaces its limits at the site, and those of other feeds stay', async () => {
  const kept = { feed: 'IDS', pattern: '^S', not_pattern: null }
  const asked = hubThat(() => ({ limits: [kept, { feed: 'NGRID', pattern: '^YZ', not_pattern: 'TEST' }] }))
  const form = await limitFeed(sceneOf('unl.edu'))
  expect(form.facts?.[0]?.value).toBe('IDS: ^S; NGRID: ^YZ, not TEST')
  const values = { feed: 'NGRID', pattern: '^H', not_pattern: 'OLD' }
  expect(form.commands(values).map(lineOf)).toEqual(["downburst sites limit unl.edu NGRID --ok '^H' --not OLD"])
  expect((await form.send(values)).notice).toBe('unl.edu may take a part of NGRID.')
  expect(bodyOf(asked[1])).toEqual({ limits: [kept, { feed: 'NGRID', pattern: '^H', not_pattern: 'OLD' }] })
  const none = { feed: 'NGRID', pattern: '', not_pattern: '' }
  expect(form.commands(none).map(lineOf)).toEqual(['downburst sites limit unl.edu NGRID'])
  expect((await form.send(none)).notice).toBe('unl.edu may take all of NGRID.')
  expect(bodyOf(asked[2])).toEqual({ limits: [kept] })
})
