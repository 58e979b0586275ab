import { expect, test } from 'vitest'
import { handedOut, roleOf, segmentOf, tunnelOf, tunnelsInOrder } from './relays'
import type { Relay, RelayTunnel } from './relays'

const NEAR = { round_trip_us: 2_000, loss_ppm: 1_000, congestion: 'cubic', rate_bps: 980_000_000 }
const TUNNEL: RelayTunnel = {
  site: 'unl.edu',
  site_side: '192.0.2.1:5',
  hub_side: '192.0.2.3:9',
  target: 'hub:7370',
  seconds: 65,
  bytes_from_hub: 7_500_000_000,
  bytes_from_site: 40_000,
  rate_from_hub_bps: 960_000_000,
  near: NEAR,
  onward: { round_trip_us: 70_000, loss_ppm: null, congestion: 'bbr', rate_bps: 960_000_000 },
  ended: false,
}
const RELAY: Relay = {
  relay: 'campus',
  address: 'relay.campus.edu:7379',
  fan_out: 'group',
  sites: ['unl.edu'],
  feeds: ['NGRID', 'WARN'],
  created_at: '2026-03-14T15:02:11Z',
  state: 'connected',
  state_words: 'connected',
  connected: true,
  reported_at: null,
  refused: null,
  tunnels: [TUNNEL],
  legs: [],
}

test('the tasks of a relay are those that it has', () => {
  expect(roleOf(RELAY)).toBe('carries connections at relay.campus.edu:7379, fans out NGRID, WARN to a local group')
  expect(roleOf({ ...RELAY, address: null, feeds: ['*'] })).toBe('fans out all feeds to a local group')
  expect(roleOf({ ...RELAY, fan_out: null })).toBe('carries connections at relay.campus.edu:7379')
  expect(handedOut('unicast')).toBe('by unicast')
})

test('a segment has its figures, as far as they are known', () => {
  expect(segmentOf(NEAR)).toMatch(/^980 Mb\/s, 2.* ms, 0\.1.* resent, cubic$/)
  expect(segmentOf(TUNNEL.onward)).toMatch(/^960 Mb\/s, 70.* ms, bbr$/)
  const unknown = { round_trip_us: null, loss_ppm: null, congestion: '', rate_bps: 0 }
  expect(segmentOf(unknown)).toBe('0 Mb/s')
})

test('tunnels are named by their site, or by the address of a peer that is none, the fastest first', () => {
  expect(tunnelOf(TUNNEL)).toContain('unl.edu: 960 Mb/s from the hub for ')
  expect(tunnelOf({ ...TUNNEL, site: null })).toContain('192.0.2.1:5: ')
  const slow = { ...TUNNEL, site: 'slow', rate_from_hub_bps: 1 }
  expect(tunnelsInOrder([slow, TUNNEL]).map((one) => one.site)).toEqual(['unl.edu', 'slow'])
})
