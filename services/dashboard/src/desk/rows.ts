/** The rows of the calendar: a link for each direction, hosts, ports; and the bars on them. */
import type { Frame } from './scale'
import type { BookedTest, Calendar, CalendarResource, Reservation, State } from './types'
import { lookOf, ownerText, rateText, stateText, type Look } from './words'

export type Way = 'out' | 'in'

/** The rates of a reservation or test, and the places in which it has them. */
export type Rates = Pick<
  Reservation,
  'rate_out_bps' | 'rate_in_bps' | 'near_out_bps' | 'near_in_bps' | 'along' | 'against'
>

interface Window {
  begin: string
  end: string
}

/** A reservation, a test, a maintenance, or a draft, in one row. */
export interface Bar {
  key: string
  look: Look
  label: string
  begin_ms: number
  /** Of one without an end: beyond every frame. */
  end_ms: number
  circuit: number | null
  state: State | null
}

export interface Row {
  key: string
  kind: CalendarResource['kind']
  /** The place of its resource. */
  resource: number
  /** `both` for hosts and ports, which have one row. */
  way: Way | 'both'
  title: string
  note: string
  /** The bars side by side, so that none covers another. */
  lanes: Bar[][]
  /** Bars beyond the last lane. */
  more: number
}

/** The rows of a calendar, each with its bars inside a frame. */
export function rowsOf(calendar: Calendar, frame: Frame): Row[] {
  const bars = barsOf(calendar, frame)
  return calendar.resources.flatMap((resource, place) => {
    if (resource.kind !== 'link') return [rowOf(resource, place, 'both', bars)]
    return [rowOf(resource, place, 'out', bars), rowOf(resource, place, 'in', bars)]
  })
}

/** The rows whose title or note has a text, and of those the ones in use if only they are wanted. */
export function filtered(rows: Row[], text: string, onlyUsed: boolean): Row[] {
  const wanted = text.trim().toLowerCase()
  return rows.filter(
    (row) => `${row.title} ${row.note}`.toLowerCase().includes(wanted) && (!onlyUsed || row.lanes.length > 0),
  )
}

/** Bars in as few lanes as they need, each lane in order. */
export function lanesOf(bars: Bar[], most: number): { lanes: Bar[][]; more: number } {
  const lanes: Bar[][] = []
  let more = 0
  for (const bar of bars.toSorted((one, other) => one.begin_ms - other.begin_ms || one.end_ms - other.end_ms)) {
    const free = lanes.find((lane) => (lane.at(-1)?.end_ms ?? 0) <= bar.begin_ms)
    if (free) free.push(bar)
    else if (lanes.length < most) lanes.push([bar])
    else more += 1
  }
  return { lanes, more }
}

/** The rate of a reservation on a resource in one direction. */
export function rateOn(one: Rates, resource: CalendarResource, place: number, way: Way): number {
  const isNearEnd = resource.kind !== 'link'
  const near = isNearEnd ? [one.near_out_bps, one.near_in_bps] : [one.rate_out_bps, one.rate_in_bps]
  const along = one.along.includes(place) ? (way === 'out' ? near[0] : near[1]) : 0
  const against = one.against.includes(place) ? (way === 'out' ? one.rate_in_bps : one.rate_out_bps) : 0
  return (along ?? 0) + against
}

/** The rate of a resource that stays free throughout a window; what has finished holds nothing any more. */
export function freeOn(
  calendar: Calendar,
  place: number,
  way: Way,
  window: Frame,
  without: number | null = null,
): number {
  const resource = calendar.resources[place]
  if (resource === undefined) return 0
  const isClosed = calendar.maintenance.some((one) => one.resources.includes(place) && overlaps(one, window))
  if (isClosed) return 0
  const steps = calendar.reservations.flatMap((one) => {
    const bps = rateOn(one, resource, place, way)
    if (bps === 0 || one.circuit === without || lookOf(one.state) === 'finished' || !overlaps(one, window)) return []
    const begin_ms = Math.max(Date.parse(one.begin), window.begin_ms)
    return [
      { at_ms: begin_ms, bps },
      { at_ms: one.end === null ? window.end_ms : Date.parse(one.end), bps: -bps },
    ]
  })
  for (const one of heldByTests(calendar)) {
    const bps = rateOn(one, resource, place, way)
    if (bps === 0 || !overlaps(one, window)) continue
    const begin_ms = Math.max(Date.parse(one.begin), window.begin_ms)
    steps.push({ at_ms: begin_ms, bps }, { at_ms: Date.parse(one.end), bps: -bps })
  }
  // At one moment an end comes before a begin, as windows are half-open.
  steps.sort((one, other) => one.at_ms - other.at_ms || one.bps - other.bps)
  let level = 0
  let peak = 0
  for (const step of steps) peak = Math.max(peak, (level += step.bps))
  return Math.max((way === 'out' ? resource.rate_out_bps : resource.rate_in_bps) - peak, 0)
}

/** The title of a resource in one direction. */
export function titleOf(resource: CalendarResource, way: Way | 'both'): string {
  if (resource.kind !== 'link') return resource.name
  return way === 'in' ? `${resource.z} → ${resource.a}` : `${resource.a} → ${resource.z}`
}

function rowOf(resource: CalendarResource, place: number, way: Way | 'both', bars: Map<string, Bar[]>): Row {
  const ways: Way[] = way === 'both' ? ['out', 'in'] : [way]
  const own = new Map(ways.flatMap((one) => bars.get(`${place} ${one}`) ?? []).map((bar) => [bar.key, bar]))
  const rate = rateText(way === 'in' ? resource.rate_in_bps : resource.rate_out_bps)
  const owner = resource.kind === 'link' ? resource.name : ownerText(resource)
  const note = `${rate}, ${owner}`
  const title = titleOf(resource, way)
  const lanes = lanesOf([...own.values()], MOST_LANES)
  return { key: `${resource.key} ${way}`, kind: resource.kind, resource: place, way, title, note, ...lanes }
}

/** All bars by the place and the direction of their resource. */
function barsOf(calendar: Calendar, frame: Frame): Map<string, Bar[]> {
  const found = new Map<string, Bar[]>()
  const put = (place: number, way: Way, bar: Bar) => {
    const key = `${place} ${way}`
    const kept = found.get(key)
    if (kept) kept.push(bar)
    else found.set(key, [bar])
  }
  for (const one of calendar.maintenance) {
    const bar = barOfMaintenance(one)
    if (overlaps(one, frame)) for (const place of one.resources) for (const way of WAYS) put(place, way, bar)
  }
  const putAll = (one: Rates, bar: Bar) => {
    for (const place of [...one.along, ...one.against]) {
      const resource = calendar.resources[place]
      if (resource) for (const way of WAYS) if (rateOn(one, resource, place, way) > 0) put(place, way, bar)
    }
  }
  for (const one of calendar.reservations) if (overlaps(one, frame)) putAll(one, barOf(one))
  for (const one of calendar.tests ?? []) if (overlaps(one, frame)) putAll(ratesOf(one), barOfTest(one))
  return found
}

/** The tests that hold a rate of their own; the rate of one inside a circuit is that circuit's. */
export function heldByTests(calendar: Calendar): (Rates & Window)[] {
  return (calendar.tests ?? []).filter((one) => one.circuit === null).map((one) => ({ ...one, ...ratesOf(one) }))
}

function ratesOf(one: BookedTest): Rates {
  const { rate_out_bps, rate_in_bps, along, against } = one
  return { rate_out_bps, rate_in_bps, near_out_bps: rate_out_bps, near_in_bps: rate_in_bps, along, against }
}

function barOfTest(one: BookedTest): Bar {
  const where = one.circuit === null ? '' : ` in circuit ${one.circuit}`
  const window = { begin_ms: Date.parse(one.begin), end_ms: Date.parse(one.end) }
  const label = `Test ${one.test}${where} ${rateText(Math.max(one.rate_out_bps, one.rate_in_bps))}`
  return { key: `t ${one.number}`, look: 'test', label, ...window, circuit: null, state: null }
}

function barOf(one: Reservation): Bar {
  const who = one.sites.length > 2 ? `${one.sites.length} sites` : one.sites.join(', ')
  const state = one.state === 'active' ? rateText(one.rate_out_bps) : stateText(one.state)
  const until = one.state === 'held' && one.held_until ? ` until ${one.held_until.slice(11, 16)}` : ''
  return {
    key: String(one.circuit),
    look: lookOf(one.state),
    label: `${one.circuit} ${who} ${state}${until}`,
    begin_ms: Date.parse(one.begin),
    end_ms: one.end === null ? Number.MAX_SAFE_INTEGER : Date.parse(one.end),
    circuit: one.circuit,
    state: one.state,
  }
}

function barOfMaintenance(one: Calendar['maintenance'][number]): Bar {
  const window = { begin_ms: Date.parse(one.begin), end_ms: Date.parse(one.end) }
  const label = `Maintenance ${one.name}${one.reason ? `: ${one.reason}` : ''}`
  return { key: `m ${one.name}`, look: 'maintenance', label, ...window, circuit: null, state: null }
}

function overlaps(one: { begin: string; end: string | null }, frame: Frame): boolean {
  return Date.parse(one.begin) < frame.end_ms && (one.end === null || Date.parse(one.end) > frame.begin_ms)
}

export const MOST_LANES = 5
const WAYS: Way[] = ['out', 'in']
