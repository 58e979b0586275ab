/** The figures of the cards on top of Now. */
import type { NowHistory, TrafficPoint } from '../api'
import { bytes, latency, percent } from '../format'
import type { Feed, Overview } from '../overview'
import { saving } from '../view'
import { many } from './incidents'

export interface Kpi {
  label: string
  figure: string
  unit: string
  caption: string
  /** The last 24 hours, oldest first, null where nothing was stored. */
  history: readonly (number | null)[]
  /** On the scale of the history. */
  limit?: number
  isOver?: boolean
}

/** In, out, saved, and the worst p99 of its objective; without history until it has come. */
export function kpisOf({ throughput, feeds }: Overview, history: NowHistory | null = null): Kpi[] {
  const past = (of: (point: TrafficPoint) => number | null) => history?.points.map(of) ?? []
  const count = many(feeds.length, 'feed')
  return [
    { label: 'In', ...rate(throughput.in_bps), caption: count, history: past((one) => one.in_bps) },
    { label: 'Out', ...outOf(throughput, history), history: past((one) => one.out_bps) },
    {
      label: savedLabel(feeds),
      ...savedOf(throughput, history),
      history: past((one) => one.saved_share),
    },
    {
      label: 'Worst p99 of its objective',
      ...worstOf(feeds),
      history: past((one) => one.worst_share),
      limit: 1,
    },
  ]
}

export interface Amount {
  figure: string
  unit: string
}

/** Bits per second with three digits and the unit that fits: `2.40 Gb/s`. */
export function rate(bps: number): Amount {
  if (!Number.isFinite(bps)) return { figure: '–', unit: '' }
  const size = Math.abs(bps)
  const at = size >= 999.5e6 ? 3 : size >= 999.5e3 ? 2 : size >= 999.5 ? 1 : 0
  return { figure: size === 0 ? '0' : three(bps / 1000 ** at), unit: RATE_UNITS[size === 0 ? 2 : at] ?? '' }
}

type Shown = Amount & { caption: string }

function outOf({ out_bps, unicast_equivalent_bps }: Overview['throughput'], history: NowHistory | null): Shown {
  const capacity_bps = history?.egress_capacity_bps ?? 0
  const caption =
    capacity_bps > 0
      ? `${percent(out_bps / capacity_bps)} of the ${said(rate(capacity_bps))} that may leave`
      : `by unicast ${said(rate(unicast_equivalent_bps))}`
  return { ...rate(out_bps), caption }
}

function savedOf(throughput: Overview['throughput'], history: NowHistory | null): Shown {
  const { out_bps, unicast_equivalent_bps } = throughput
  const sums = sumOf(throughput, history)
  if (unicast_equivalent_bps <= 0) return { ...shareAmount(saving(throughput).share), caption: sums }
  const saved = unicast_equivalent_bps - out_bps
  const now = partOf(said(rate(saved)), said(rate(unicast_equivalent_bps)))
  return { ...shareAmount(saved / unicast_equivalent_bps), caption: `${now}; ${sums}` }
}

/** A relay on the way of a site saves nothing; one that hands out the copy of a leg does. */
function savedLabel(feeds: readonly Feed[]): string {
  const legs = feeds.flatMap(({ plan }) => plan?.legs ?? [])
  return legs.some(({ relay }) => relay) ? 'Saved by multicast and relays' : 'Saved by multicast'
}

function sumOf(throughput: Overview['throughput'], history: NowHistory | null): string {
  const egress = history?.today.egress_bytes ?? null
  const copies = history?.today.unicast_equivalent_bytes ?? null
  if (egress !== null && copies !== null) return `today ${partOf(bytes(copies - egress), bytes(copies))}`
  const { egress_bytes, unicast_equivalent_bytes } = throughput
  return `in all ${partOf(bytes(unicast_equivalent_bytes - egress_bytes), bytes(unicast_equivalent_bytes))}`
}

/** `8.8 of 11.3 Gb/s`; the first unit is left out where it is the second one's. */
function partOf(part: string, whole: string): string {
  const unit = ` ${whole.split(' ').at(-1)}`
  return `${part.endsWith(unit) ? part.slice(0, -unit.length) : part} of ${whole}`
}

function worstOf(feeds: readonly Feed[]): Shown & { isOver?: boolean } {
  const worst = worstFeed(feeds)
  if (worst === null) return { figure: '–', unit: '', caption: 'No latency is measured yet' }
  const { feed, p99_ms } = worst
  const share = p99_ms / feed.objective_ms
  const caption = `${feed.feed}: ${latency(p99_ms)} of ${latency(feed.objective_ms)}`
  return { ...shareAmount(share), caption, isOver: share > 1 }
}
function worstFeed(feeds: readonly Feed[]): { feed: Feed; p99_ms: number } | null {
  const measured = feeds.flatMap((feed) => {
    const figures = feed.latency.distribution_ms
    const p99_ms = figures?.p99 ?? null
    return p99_ms !== null && figures?.count !== 0 && feed.objective_ms > 0 ? [{ feed, p99_ms }] : []
  })
  const shareOf = (one: { feed: Feed; p99_ms: number }) => one.p99_ms / one.feed.objective_ms
  return measured.reduce<(typeof measured)[number] | null>(
    (worst, one) => (worst === null || shareOf(one) > shareOf(worst) ? one : worst),
    null,
  )
}

function shareAmount(share: number | null): Amount {
  const [figure = '–', unit = ''] = percent(share).split(' ')
  return { figure, unit }
}

function said({ figure, unit }: Amount): string {
  return `${figure} ${unit}`
}

function three(value: number): string {
  const size = Math.abs(value)
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)
}

const RATE_UNITS = ['b/s', 'kb/s', 'Mb/s', 'Gb/s']
