/** Measurements of a site's paths by perfSONAR's test points. */
import type { PathMeasurement as Measurement } from './api'
import { bound, latency, megabits } from './format'

export type { PathMeasurement as Measurement } from './api'

/** The figure of a measurement with its error: `42.1 ms ± 0.8 ms`, `938 Mb/s`. */
export function figureOf(measured: Measurement): string {
  const figure = measured.figure
  if (figure === null) return 'none'
  if (figure.unit === 'bps') return `${megabits(figure.value)} Mb/s`
  const delay = latency(figure.value / 1000)
  if (figure.error === null) return `${delay}, error not known`
  return figure.error === 0 ? delay : `${delay} ${bound(figure.error / 1000)}`
}

/** The reason for a missing figure, or the reservation about one. */
export function remarkOf(measured: Measurement): string {
  return measured.refused || (measured.figure?.note ?? '')
}

/** An end of a measured path: its site where that is known. */
export function endOf(host: string, site: string | null): string {
  return site ? `${host} (${site})` : host || 'not named'
}

/** The share of packets lost: `2 %`; empty where a test does not count them. */
export function lostOf(measured: Measurement): string {
  const share = measured.figure?.lost_share ?? null
  return share === null ? '' : `${Number((share * 100).toPrecision(3))} %`
}
