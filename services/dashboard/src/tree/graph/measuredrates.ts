/** Rates that something measured: the tunnels of relays, and circuits with one site. */
import type { Relay } from '../../api'
import type { Overview } from '../../overview'
import { idOf, type Way } from './model'

export interface Ends {
  from: string
  to: string
  way: Way
  circuits: readonly number[]
}

/** The rate of an edge; null where nothing measures it. */
export function ratesOf(relays: readonly Relay[], overview: Overview | null): (edge: Ends) => number | null {
  const tunnels = tunnelRates(relays)
  const circuits = new Map(
    (overview?.circuits ?? [])
      .filter(({ sites, used_out_bps }) => sites.length === 1 && used_out_bps > 0)
      .map((one) => [one.circuit, one.used_out_bps]),
  )
  return ({ from, to, way, circuits: carriers }) => {
    const [circuit] = carriers
    if (carriers.length === 1 && circuit !== undefined) return circuits.get(circuit) ?? null
    return way === 'unicast' ? (tunnels.get(`${from} ${to}`) ?? null) : null
  }
}

/** By relay and site, what the tunnels between them carry from the hub. */
function tunnelRates(relays: readonly Relay[]): Map<string, number> {
  const found = new Map<string, number>()
  for (const { relay, tunnels } of relays) {
    for (const { site, rate_from_hub_bps, ended } of tunnels) {
      if (site === null || ended) continue
      const key = `${idOf('relay', relay)} ${idOf('site', site)}`
      found.set(key, (found.get(key) ?? 0) + rate_from_hub_bps)
    }
  }
  return found
}
