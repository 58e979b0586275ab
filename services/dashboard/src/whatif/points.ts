/** Candidates of a choice as points: p99 against egress, both logarithmic. */
import type { Candidate, Transport, WhatIf } from '../api'
import { latency, megabits } from '../format'

export interface Point {
  transport: Transport
  x: number
  y: number
  isChosen: boolean
  isFeasible: boolean
  label: string
  /** The label stands left of the point. */
  isLeft: boolean
  label_y: number
}

export interface Tick {
  at: number
  text: string
}

export interface Chart {
  points: Point[]
  x_ticks: Tick[]
  y_ticks: Tick[]
  /** The height of the objective. */
  objective_y: number
  /** The base of its label: above the line where there is room. */
  objective_label_y: number
}

export interface Box {
  width: number
  height: number
  left: number
  top: number
  right: number
  bottom: number
}

/** Candidates without figures have no point; the table has their reasons. */
export function chartOf(candidates: readonly Candidate[], chosen: Transport, objective_ms: number, box: Box): Chart {
  const drawn = candidates.filter(hasFigures)
  const x = scaleOf([...drawn.map((one) => one.egress_bps), ...(drawn.length === 0 ? [1e6] : [])])
  const y = scaleOf([...drawn.map((one) => one.predicted_p99_ms), objective_ms])
  const [wide, high] = [box.width - box.left - box.right, box.height - box.top - box.bottom]
  const across = (value: number) => Math.round(box.left + x.share(value) * wide)
  const up = (value: number) => Math.round(box.top + (1 - y.share(value)) * high)
  const points = drawn.map((one): Point => {
    const place = { x: across(one.egress_bps), y: up(one.predicted_p99_ms) }
    const isChosen = one.transport === chosen
    return {
      ...place,
      transport: one.transport,
      isChosen,
      isFeasible: one.feasible,
      label: `${one.transport}${isChosen ? ', chosen' : one.feasible ? '' : ', not possible'}`,
      isLeft: place.x > box.left + wide * LEFT_FROM,
      label_y: place.y,
    }
  })
  return {
    points: spread(points, box),
    x_ticks: x.decades.map((at) => ({ at: across(at), text: rate(at) })),
    y_ticks: y.decades.map((at) => ({ at: up(at), text: at >= 1_000 ? `${at / 1_000} s` : `${at} ms` })),
    objective_y: up(objective_ms),
    objective_label_y: up(objective_ms) + (up(objective_ms) - box.top < LINE ? LINE - 2 : -4),
  }
}

/** `104 sites: multicast instead of unicast`. */
export function headlineOf({ tried, now, then }: WhatIf): string {
  const who = tried.sites === 1 ? '1 site' : `${tried.sites} sites`
  const isSame = now.transport === then.transport
  return `${who}: ${isSame ? `still ${then.transport}` : `${then.transport} instead of ${now.transport}`}`
}

/** `51.2 Mb/s, by unicast 2260 Mb/s; p99 9.40 s`. */
export function figuresOf({ then }: WhatIf): string {
  const chosen = then.candidates.find((one) => one.transport === then.transport)
  const copies = then.candidates.find((one) => one.transport === 'unicast')
  const beside = then.transport !== 'unicast' && copies ? `, by unicast ${megabits(copies.egress_bps)} Mb/s` : ''
  return `${megabits(chosen?.egress_bps)} Mb/s${beside}; p99 ${latency(chosen?.predicted_p99_ms)}`
}

type Drawn = Candidate & { egress_bps: number; predicted_p99_ms: number }

function hasFigures(one: Candidate): one is Drawn {
  return (one.egress_bps ?? 0) > 0 && (one.predicted_p99_ms ?? 0) > 0
}

interface Scale {
  share: (value: number) => number
  decades: number[]
}

/** Whole decades around the values. */
function scaleOf(values: readonly number[]): Scale {
  const logs = values.map(Math.log10)
  const low = Math.floor(Math.min(...logs))
  const high = Math.max(Math.ceil(Math.max(...logs)), low + 1)
  const decades = Array.from({ length: high - low + 1 }, (_, at) => 10 ** (low + at))
  return { share: (value) => (Math.log10(value) - low) / (high - low), decades }
}

function rate(bps: number): string {
  if (bps >= 1e9) return `${bps / 1e9} Gb/s`
  return bps >= 1e6 ? `${bps / 1e6} Mb/s` : `${bps / 1e3} kb/s`
}

/** Labels one below the other where points are near, within the box. */
function spread(points: Point[], box: Box): Point[] {
  const sorted = points.toSorted((one, other) => one.y - other.y)
  let free = box.top + LINE / 2
  for (const point of sorted) {
    point.label_y = Math.max(point.label_y, free)
    free = point.label_y + LINE
  }
  const over = Math.max(free - LINE - (box.height - box.bottom - LINE / 2), 0)
  return sorted.map((point) => ({ ...point, label_y: point.label_y - over }))
}

const LEFT_FROM = 0.6
const LINE = 16
