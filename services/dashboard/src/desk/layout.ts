/** The places of the topology's drawing: columns by the distance from the hub, and few crossings; always the same. */
import { placeOf } from './path'
import type { Calendar, CalendarResource, Topology } from './types'
import { ownerText } from './words'

export interface Spot {
  name: string
  kind: 'switch' | 'hub' | 'site'
  /** The second line: its domain, or the host or site that has it. */
  note: string
  x: number
  y: number
}

export interface Line {
  name: string
  /** The place of the link in the calendar's resources. */
  resource: number
  from: Spot
  to: Spot
}

export interface Drawing {
  width: number
  height: number
  spots: Spot[]
  lines: Line[]
}

/** The drawing of a topology; ports without a link are left out. */
export function drawingOf(topology: Topology, calendar: Calendar): Drawing {
  const edges = topology.links.map((link) => {
    return { name: link.name, a: placeOf(topology, link.a), z: placeOf(topology, link.z) }
  })
  const switches = topology.switches.map((one) => one.name)
  const names = [...new Set([...switches, ...edges.flatMap((one) => [one.a, one.z])])]
  const near = neighbours(names, edges)
  const columns = columnsOf(names, near, (name) => isHub(calendar, name))
  sweep(columns, near)
  const tallest = Math.max(...columns.map((column) => column.length), 1)
  const spots = new Map<string, Spot>()
  for (const [at, column] of columns.entries()) {
    for (const [row, name] of column.entries()) {
      const y = ((row + 0.5) * tallest * ROW) / column.length
      spots.set(name, { name, ...described(topology, calendar, name), x: MARGIN + at * COLUMN, y: MARGIN / 2 + y })
    }
  }
  const lines = edges.flatMap((edge) => {
    const [from, to] = [spots.get(edge.a), spots.get(edge.z)]
    const resource = calendar.resources.findIndex((one) => one.key === `link ${edge.name}`)
    return from && to ? [{ name: edge.name, resource, from, to }] : []
  })
  const width = 2 * MARGIN + Math.max(columns.length - 1, 0) * COLUMN
  return { width, height: MARGIN + tallest * ROW, spots: [...spots.values()], lines }
}

function neighbours(names: string[], edges: { a: string; z: string }[]): Map<string, string[]> {
  const found = new Map<string, string[]>(names.map((name) => [name, []]))
  for (const { a, z } of edges) {
    found.get(a)?.push(z)
    found.get(z)?.push(a)
  }
  return found
}

/** Columns by the number of links to the hub; parts without a way to it begin at their first name. */
function columnsOf(names: string[], near: Map<string, string[]>, isStart: (name: string) => boolean): string[][] {
  const depth = new Map<string, number>()
  const spread = (starts: string[]) => {
    const waiting = [...starts]
    for (const name of waiting) depth.set(name, 0)
    for (const name of waiting) {
      for (const next of near.get(name)?.toSorted() ?? []) {
        if (depth.has(next)) continue
        depth.set(next, (depth.get(name) ?? 0) + 1)
        waiting.push(next)
      }
    }
  }
  const sorted = names.toSorted()
  spread(sorted.filter(isStart))
  for (const name of sorted) if (!depth.has(name)) spread([name])
  const columns: string[][] = []
  for (const name of sorted) {
    const at = depth.get(name) ?? 0
    while (columns.length <= at) columns.push([])
    columns[at]?.push(name)
  }
  return columns
}

/** Orders each column by the mean place of its neighbours in the column before, which leaves few crossings. */
function sweep(columns: string[][], near: Map<string, string[]>): void {
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [at, column] of columns.entries()) {
      const before = columns[turn % 2 === 0 ? at - 1 : at + 1] ?? []
      const place = new Map(before.map((name, index) => [name, index / Math.max(before.length, 1)]))
      const mean = (name: string) => {
        const found = (near.get(name) ?? []).flatMap((one) => place.get(one) ?? [])
        const sum = found.reduce((total, one) => total + one, 0)
        return found.length > 0 ? sum / found.length : column.indexOf(name) / column.length
      }
      const means = new Map(column.map((name) => [name, mean(name)]))
      column.sort((one, other) => (means.get(one) ?? 0) - (means.get(other) ?? 0) || one.localeCompare(other))
    }
  }
}

function described(topology: Topology, calendar: Calendar, name: string): Pick<Spot, 'kind' | 'note'> {
  const found = topology.switches.find((one) => one.name === name)
  if (found) return { kind: 'switch', note: found.translates ? `${found.domain}, changes tags` : found.domain }
  const port = portOf(calendar, name)
  const host = port?.a ? `${port.a}, ` : ''
  const note = `${host}${port?.owner ?? ownerText(port)}`
  return { kind: port?.owner ? 'site' : 'hub', note }
}

function isHub(calendar: Calendar, name: string): boolean {
  const port = portOf(calendar, name)
  return port !== undefined && port.owner === null
}

function portOf(calendar: Calendar, name: string): CalendarResource | undefined {
  return calendar.resources.find((one) => one.kind === 'port' && one.name === name)
}

const COLUMN = 210
const ROW = 84
const MARGIN = 90
const TURNS = 4
