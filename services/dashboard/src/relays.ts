/** Relays in words. */
import type { Relay, RelaySegment, RelayTunnel } from './api'
import { fineShare, latency, megabits, span } from './format'

export type { Relay, RelayTunnel }

/** The tasks of a relay: `carries connections at relay.campus.edu:7379, fans out NGRID to a local group`. */
export function roleOf(relay: Relay): string {
  const parts = []
  if (relay.address !== null) parts.push(`carries connections at ${relay.address}`)
  if (relay.fan_out !== null) {
    const feeds = relay.feeds.includes('*') ? 'all feeds' : relay.feeds.join(', ')
    parts.push(`fans out ${feeds} ${handedOut(relay.fan_out)}`)
  }
  return parts.join(', ')
}

/** The way of a relay's copies to the sites behind it. */
export function handedOut(fanOut: string): string {
  return fanOut === 'group' ? 'to a local group' : `by ${fanOut}`
}

/** A segment of a tunnel: `980 Mb/s, 2 ms, 0.1 % resent, cubic`; figures that are not known are left out. */
export function segmentOf(segment: RelaySegment): string {
  const parts = [`${megabits(segment.rate_bps)} Mb/s`]
  if (segment.round_trip_us !== null) parts.push(latency(segment.round_trip_us / 1000))
  if (segment.loss_ppm !== null) parts.push(`${fineShare(segment.loss_ppm / 1e6)} resent`)
  if (segment.congestion !== '') parts.push(segment.congestion)
  return parts.join(', ')
}

/** The site of a tunnel with its present rate: `unl.edu: 960 Mb/s from the hub for 1 min`. */
export function tunnelOf(tunnel: RelayTunnel): string {
  const site = tunnel.site ?? tunnel.site_side
  return `${site}: ${megabits(tunnel.rate_from_hub_bps)} Mb/s from the hub for ${span(tunnel.seconds)}`
}

/** The tunnels of a relay, the fastest first. */
export function tunnelsInOrder(tunnels: RelayTunnel[]): RelayTunnel[] {
  return tunnels.toSorted((one, other) => other.rate_from_hub_bps - one.rate_from_hub_bps)
}
