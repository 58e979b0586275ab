/** States of the nodes: sites as on the map; for readers of published figures, the connections that the tree has. */
import type { Strip, TreeSite } from '../../api'
import { MAP_WORDS, mapSitesOf, MARKS } from '../../map/sites'
import type { Overview } from '../../overview'
import type { MarkedState } from '../../ui/marks/states'

export interface NodeState {
  mark: MarkedState
  words: string
}

/** The states of sites and relays by name, as the map has them; empty to readers of published figures. */
export function statesOf(overview: Overview | null, strip: Strip | null): ReadonlyMap<string, NodeState> {
  if (overview === null) return new Map()
  const records = overview.sites.map((site) => ({ ...site, active: true, place: NO_PLACE }))
  return new Map(
    mapSitesOf(records, overview, strip).map((one) => {
      const isConnectedRelay = one.isRelay && one.state === 'unmeasured'
      return [one.site, isConnectedRelay ? linkState(true) : { mark: MARKS[one.state], words: MAP_WORDS[one.state] }]
    }),
  )
}

/** The state of a site of which only the connection is known: connected is not yet within the objectives. */
export function connectionState({ connected }: Pick<TreeSite, 'connected'>): NodeState {
  return connected ? { mark: 'unknown', words: 'connected' } : linkState(false)
}

/** The state of a relay, another hub or a source: it has no latency, its connection is all. */
export function linkState(isConnected: boolean): NodeState {
  return isConnected ? { mark: 'within', words: 'connected' } : { mark: 'critical', words: 'not connected' }
}

/** The hub itself, by its node; null to readers without an overview. */
export function hubState(overview: Overview | null): NodeState | null {
  if (overview === null) return null
  const { running, restarts } = overview.hub.node
  if (!running) return { mark: 'critical', words: 'node stopped' }
  const again = restarts === 0 ? '' : `, ${restarts} ${restarts === 1 ? 'restart' : 'restarts'}`
  return { mark: 'within', words: `node runs${again}` }
}

const NO_PLACE = { text: '', latitude: null, longitude: null }
