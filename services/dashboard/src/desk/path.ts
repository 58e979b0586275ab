/** The path of a reservation as the form shows it: its ends and hops, with tags and free rates. */
import { freeOn } from './rows'
import type { Frame } from './scale'
import type { Calendar, Circuit, Topology } from './types'
import { ownerText } from './words'

export interface PathStep {
  key: string
  name: string
  note: string
  /** `3021`, or `3021 → 3123` where it changes; empty without tags. */
  tag: string
  isChanged: boolean
  /** The rate that is free there throughout the window, for this reservation; null: not known. */
  free_bps: number | null
}

/** The steps from the near end to the far one. A multipoint circuit has its ends alone. */
export function pathOf(circuit: Circuit, topology: Topology, calendar: Calendar, window: Frame): PathStep[] {
  const places = new Map(calendar.resources.map((one, place) => [one.key, place]))
  const free = (key: string, way: 'out' | 'in') => {
    const place = places.get(key)
    return place === undefined ? null : freeOn(calendar, place, way, window, circuit.circuit)
  }
  const [near, ...far] = circuit.ends
  const steps: PathStep[] = near ? [endStep(near.port, near.vlan, null, calendar, (key) => free(key, 'out'))] : []
  let before = near?.vlan ?? null
  for (const hop of circuit.path) {
    const link = topology.links.find((one) => one.name === hop.link)
    const [a, z] = link ? [placeOf(topology, link.a), placeOf(topology, link.z)] : ['', '']
    const kind = link?.tags?.kind === 'vni' ? 'VNI ' : 'VLAN '
    const domain = domainOf(topology, hop.forward ? z : a)
    steps.push({
      key: `link ${hop.link}`,
      name: hop.link,
      note: link ? `${hop.forward ? `${a} → ${z}` : `${z} → ${a}`}${domain}` : 'no longer in the topology',
      ...tagText(before, hop.tag, kind),
      free_bps: free(`link ${hop.link}`, hop.forward ? 'out' : 'in'),
    })
    before = hop.tag ?? before
  }
  for (const end of far) steps.push(endStep(end.port, end.vlan, before, calendar, (key) => free(key, 'in')))
  return steps
}

/** `4 hops, 2 domains`. */
export function pathText(circuit: Circuit, topology: Topology): string {
  if (circuit.path.length === 0) return 'the ends alone: no link of the topology is reserved'
  const names = circuit.path.flatMap((hop) => {
    const link = topology.links.find((one) => one.name === hop.link)
    return link ? [placeOf(topology, link.a), placeOf(topology, link.z)] : []
  })
  const domains = new Set(topology.switches.filter((one) => names.includes(one.name)).map((one) => one.domain))
  const of = domains.size > 0 ? `, ${domains.size} ${domains.size === 1 ? 'domain' : 'domains'}` : ''
  return `${circuit.path.length} ${circuit.path.length === 1 ? 'hop' : 'hops'}${of}`
}

/** The switch of a port, or the port itself. */
export function placeOf(topology: Topology, port: string): string {
  return topology.switches.find((one) => one.ports.includes(port))?.name ?? port
}

function endStep(
  port: string,
  vlan: number | null,
  before: number | null,
  calendar: Calendar,
  free: (key: string) => number | null,
): PathStep {
  const resource = calendar.resources.find((one) => one.kind === 'port' && one.name === port)
  const host = resource?.a ?? ''
  const rates = [free(port), host === '' ? null : free(`host ${host}`)].filter((rate) => rate !== null)
  return {
    key: `port ${port}`,
    name: host === '' ? port : host,
    note: `${host === '' ? 'port' : `port ${port}`} of ${ownerText(resource)}`,
    ...tagText(before, vlan, 'VLAN '),
    free_bps: rates.length > 0 ? Math.min(...rates) : null,
  }
}

function tagText(before: number | null, tag: number | null, kind: string): { tag: string; isChanged: boolean } {
  if (tag === null) return { tag: '', isChanged: false }
  const isChanged = before !== null && before !== tag
  return { tag: isChanged ? `${before} → ${tag}` : `${kind}${tag}`, isChanged }
}

function domainOf(topology: Topology, place: string): string {
  const found = topology.switches.find((one) => one.name === place)
  return found ? `, ${found.domain}` : ''
}
