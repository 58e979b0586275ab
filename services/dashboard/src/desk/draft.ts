/** A reservation that is being made: moved and resized by pointer and keys, and sent as a request. */
import { names } from '../selfservice'
import { HOUR_MS, snapped, timeOf, type Frame } from './scale'
import type { Calendar, CalendarResource, Cap, Circuit, Creation, PathOrder, Wanted } from './types'

export interface Draft {
  /** The port of the near end: the hub's, or a site's for a circuit between two sites. */
  from: string
  to: string
  /** As they stand in the form. */
  out_mbps: number | null
  in_mbps: number | null
  begin_ms: number
  end_ms: number
  order: PathOrder
  /** Bytes above the rate wait, or go as best effort. */
  cap: Cap
  /** Names of links and switches, as they stand in the form. */
  include: string
  exclude: string
  /** Minutes of the hold, if it is held. */
  hold_min: number | null
  creation: Creation
  description: string
}

/** The part of a bar under the pointer. */
export type Grip = 'begin' | 'end' | 'whole'

/** A draft for a window: between the first port of the hub and the port of a row, as far as they are known. */
export function draftFor(calendar: Calendar, begin_ms: number, end_ms: number, row: CalendarResource | null): Draft {
  const ports = calendar.resources.filter((one) => one.kind === 'port')
  const own = ports.find((one) => one.owner === null)?.name ?? ''
  const ofHost = ports.filter((one) => row?.kind === 'host' && one.a === row.name)
  const here = row?.kind === 'port' ? [row] : ofHost
  const isNear = here.some((one) => one.owner === null)
  const to = isNear ? '' : (here[0]?.name ?? '')
  return {
    from: (isNear ? here[0]?.name : own) ?? own,
    to,
    out_mbps: null,
    in_mbps: 0,
    begin_ms,
    end_ms,
    order: 'shortest',
    cap: 'hard',
    include: '',
    exclude: '',
    hold_min: null,
    creation: 'automatic',
    description: '',
  }
}

/** A draft like a circuit, in another window of the same length. */
export function draftLike(circuit: Circuit, begin_ms: number): Draft {
  const length_ms = circuit.end === null ? HOUR_MS : Date.parse(circuit.end) - Date.parse(circuit.begin)
  return {
    from: circuit.ends[0]?.port ?? '',
    to: circuit.ends[1]?.port ?? '',
    out_mbps: circuit.rate_out_bps / 1e6,
    in_mbps: circuit.rate_in_bps / 1e6,
    begin_ms,
    end_ms: begin_ms + length_ms,
    order: circuit.path_order,
    cap: circuit.cap,
    include: circuit.include.join(' '),
    exclude: circuit.exclude.join(' '),
    hold_min: null,
    creation: circuit.creation,
    description: circuit.description,
  }
}

/** The window moved by a length of time. */
export function moved<Window extends { begin_ms: number; end_ms: number }>(window: Window, by_ms: number): Window {
  return { ...window, begin_ms: window.begin_ms + by_ms, end_ms: window.end_ms + by_ms }
}

/** The window with one end moved; at least a step remains. */
export function resized<Window extends { begin_ms: number; end_ms: number }>(
  window: Window,
  grip: 'begin' | 'end',
  by_ms: number,
  least_ms: number,
): Window {
  if (grip === 'begin') return { ...window, begin_ms: Math.min(window.begin_ms + by_ms, window.end_ms - least_ms) }
  return { ...window, end_ms: Math.max(window.end_ms + by_ms, window.begin_ms + least_ms) }
}

/** The window as the pointer drags it: its moved edge on a step, a whole one with its begin on a step. */
export function dragged<Window extends { begin_ms: number; end_ms: number }>(
  window: Window,
  grip: Grip,
  by_ms: number,
  step_ms: number,
): Window {
  const edge = grip === 'end' ? window.end_ms : window.begin_ms
  const by = snapped(edge + by_ms, step_ms) - edge
  return grip === 'whole' ? moved(window, by) : resized(window, grip, by, step_ms)
}

/** The window after a key: arrows move it, with Shift they move its end; `null` for other keys. */
export function keyed<Window extends { begin_ms: number; end_ms: number }>(
  window: Window,
  key: string,
  shift: boolean,
  step_ms: number,
): Window | null {
  const by = key === 'ArrowRight' ? step_ms : key === 'ArrowLeft' ? -step_ms : 0
  if (by === 0) return null
  return shift ? resized(window, 'end', by, step_ms) : moved(window, by)
}

/** The part of a bar at a place of the screen; an edge takes at most a quarter of it. */
export function gripOf(box: { left: number; right: number }, x_px: number): Grip {
  const edge_px = Math.min(GRIP_PX, (box.right - box.left) / 4)
  if (x_px - box.left <= edge_px) return 'begin'
  return box.right - x_px <= edge_px ? 'end' : 'whole'
}

/** The window drawn from one place of a track to another; a click alone makes an hour. */
export function drawn(frame: Frame, width_px: number, from_px: number, to_px: number, step_ms: number): Frame {
  const [left, right] = [Math.min(from_px, to_px), Math.max(from_px, to_px)]
  const begin_ms = snapped(timeOf(frame, width_px, left), step_ms)
  if (right - left < CLICK_PX) return { begin_ms, end_ms: begin_ms + Math.max(HOUR_MS, step_ms) }
  return { begin_ms, end_ms: Math.max(snapped(timeOf(frame, width_px, right), step_ms), begin_ms + step_ms) }
}

/** What is missing of a draft, in a sentence; `null` if it can be asked for. */
export function lackOf(draft: Draft): string | null {
  if (draft.from === '' || draft.to === '') return 'Choose both ends.'
  if (draft.from === draft.to) return 'Choose two different ends.'
  if (draft.out_mbps === null || !(draft.out_mbps > 0)) return 'Give the rate to the far end, above 0 Mb/s.'
  if (draft.in_mbps !== null && !(draft.in_mbps >= 0)) return 'Give a rate back of 0 Mb/s or more.'
  if (draft.end_ms <= draft.begin_ms) return 'The window ends not after its begin. Give a later end.'
  if (draft.hold_min !== null && !(draft.hold_min > 0 && draft.hold_min <= 60)) return 'A hold lasts 1 to 60 minutes.'
  return null
}

/** The request of a draft; `calendar` says whose the ports are. What the hub takes by itself is left out. */
export function wantedOf(draft: Draft, calendar: Calendar): Wanted {
  const port = calendar.resources.find((one) => one.kind === 'port' && one.name === draft.from)
  const isHub = port === undefined || port.owner === null
  const wanted: Wanted = {
    hub: isHub ? { port: draft.from } : null,
    sites: isHub ? [{ port: draft.to }] : [{ port: draft.from }, { port: draft.to }],
    rate_out_bps: bps(draft.out_mbps),
    rate_in_bps: bps(draft.in_mbps),
    begin: new Date(draft.begin_ms).toISOString(),
    end: new Date(draft.end_ms).toISOString(),
    description: draft.description,
  }
  const [include, exclude] = [names(draft.include), names(draft.exclude)]
  if (draft.order !== 'shortest') wanted.path_order = draft.order
  if (draft.cap !== 'hard') wanted.cap = draft.cap
  if (include.length > 0) wanted.include = include
  if (exclude.length > 0) wanted.exclude = exclude
  if (draft.creation !== 'automatic') wanted.creation = draft.creation
  if (draft.hold_min !== null) wanted.hold_s = draft.hold_min * 60
  return wanted
}

/** The command that asks for the same. */
export function commandOf(draft: Draft, calendar: Calendar): string {
  const port = calendar.resources.find((one) => one.kind === 'port' && one.name === draft.from)
  const isHub = port === undefined || port.owner === null
  const words = ['downburst circuits add', isHub ? `--port ${draft.from}` : `--from ${draft.from}`, `--to ${draft.to}`]
  words.push(`--rate ${draft.out_mbps ?? 0}M`)
  if (draft.in_mbps) words.push(`--rate-back ${draft.in_mbps}M`)
  words.push(`--begin ${instant(draft.begin_ms)} --end ${instant(draft.end_ms)}`)
  if (draft.hold_min !== null) words.push(`--hold ${draft.hold_min * 60}s`)
  if (draft.creation === 'by-hand') words.push('--by-hand')
  if (draft.order !== 'shortest') words.push(`--path-order ${draft.order}`)
  if (draft.cap !== 'hard') words.push(`--cap ${draft.cap}`)
  words.push(...names(draft.include).map((name) => `--include ${name}`))
  words.push(...names(draft.exclude).map((name) => `--exclude ${name}`))
  return words.join(' ')
}

function instant(at_ms: number): string {
  return new Date(at_ms).toISOString().replace('.000', '')
}

function bps(mbps: number | null): number {
  return Math.round((mbps ?? 0) * 1e6)
}

const CLICK_PX = 4
const GRIP_PX = 9
