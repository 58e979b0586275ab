/** The figures of the cards on top of Now. */
import { bytes, latency, percent } from '../format'
import type { Feed, Overview } from '../overview'
import { saving } from '../view'
import { many } from './incidents'

export interface Kpi {
  label: string
  figure: string
  unit: string
  caption: string
  isOver?: boolean
}

/** In, out, saved by multicast and relays, and the worst p99 of its objective. */
export function kpisOf({ throughput, feeds }: Overview): Kpi[] {
  const { in_bps, out_bps, unicast_equivalent_bps } = throughput
  return [
    { label: 'In', ...rate(in_bps), caption: many(feeds.length, 'feed') },
    { label: 'Out', ...rate(out_bps), caption: `by unicast ${said(rate(unicast_equivalent_bps))}` },
    { label: 'Saved by multicast and relays', ...savedOf(throughput) },
    { label: 'Worst p99 of its objective', ...worstOf(feeds) },
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

function savedOf(throughput: Overview['throughput']): Omit<Kpi, 'label'> {
  const { out_bps, unicast_equivalent_bps, egress_bytes, unicast_equivalent_bytes } = throughput
  const inAll = `in all ${bytes(unicast_equivalent_bytes - egress_bytes)} of ${bytes(unicast_equivalent_bytes)}`
  if (unicast_equivalent_bps <= 0) return { ...shareAmount(saving(throughput).share), caption: inAll }
  const saved = unicast_equivalent_bps - out_bps
  const now = `${said(rate(saved))} of ${said(rate(unicast_equivalent_bps))}`
  return { ...shareAmount(saved / unicast_equivalent_bps), caption: `${now}; ${inAll}` }
}

function worstOf(feeds: readonly Feed[]): Omit<Kpi, 'label'> {
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
