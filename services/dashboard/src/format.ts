/** Text for figures. Every function says "not known" for what was not measured, and never hides a sign. */

export const NOT_KNOWN = '–'

/** Bits per second in Mb/s: `123`, `12.3`, `1.23`, `0.004`. */
export function megabits(bps: number | null | undefined): string {
  if (isAbsent(bps)) return NOT_KNOWN
  const value = bps / 1e6
  if (value === 0) return '0'
  if (Math.abs(value) < 0.001) return signed(value) + '<0.001'
  return decimals(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 ? 2 : 3)
}

/** Milliseconds with the unit that reads best: `0.42 ms`, `8.1 ms`, `431 ms`, `2.31 s`, `4.2 min`. */
export function latency(ms: number | null | undefined): string {
  if (isAbsent(ms)) return NOT_KNOWN
  const size = Math.abs(ms)
  if (size >= 120_000) return `${decimals(ms / 60_000, 1)} min`
  if (size >= 1000) return `${decimals(ms / 1000, size >= 10_000 ? 1 : 2)} s`
  return `${decimals(ms, size >= 100 ? 0 : size >= 1 ? 1 : 2)} ms`
}

/** The label of a decade on an axis: `0.1 ms`, `10 ms`, `1 s`. */
export function decade(ms: number): string {
  return ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`
}

/** A bound of an estimate: `± 0.3 ms`. */
export function bound(ms: number | null | undefined): string {
  return isAbsent(ms) ? NOT_KNOWN : `± ${latency(ms)}`
}

/**
 * A latency that two clocks measured, with their bound: `42.1 ms ± 0.80 ms`. It is `not known (…)` if the bound exceeds
 * half of it, and flagged `(clock)` below zero.
 */
export function measured(ms: number | null | undefined, bound_ms: number | null | undefined): string {
  return doubted(ms, bound_ms, isAbsent(bound_ms) ? '' : ` ${bound(bound_ms)}`)
}

/** The same beside a bound that is shown elsewhere. */
export function doubted(ms: number | null | undefined, bound_ms: number | null | undefined, within = ''): string {
  if (isAbsent(ms)) return NOT_KNOWN
  const shown = latency(ms) + within
  if (ms < 0) return `${shown} (clock)`
  return !isAbsent(bound_ms) && bound_ms > ms * WIDEST_SHARE ? `not known (${shown})` : shown
}

/** A value is known if its bound is at most this share of it. */
const WIDEST_SHARE = 0.5

/** Bytes in decimal units: `999 B`, `1.2 kB`, `340 MB`, `1.25 GB`. */
export function bytes(count: number | null | undefined): string {
  if (isAbsent(count)) return NOT_KNOWN
  let value = count
  let unit = 0
  while (Math.abs(value) >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000
    unit += 1
  }
  const places = unit === 0 ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return `${decimals(value, places)} ${BYTE_UNITS[unit]}`
}

/** A share as a percentage: `0 %`, `<1 %`, `47 %`. */
export function percent(share: number | null | undefined): string {
  if (isAbsent(share)) return NOT_KNOWN
  const value = share * 100
  if (value > 0 && value < 1) return '<1 %'
  if (value > 99 && value < 100) return '>99 %'
  return `${decimals(value, 0)} %`
}

/** A small share, as loss is: `0 %`, `0.02 %`, `1.5 %`. */
export function fineShare(share: number | null | undefined): string {
  if (isAbsent(share)) return NOT_KNOWN
  const value = share * 100
  if (value > 0 && value < 0.005) return '<0.01 %'
  return `${decimals(value, value === 0 || value >= 10 ? 0 : value >= 1 ? 1 : 2)} %`
}

/** A whole number in groups: `12 345`. */
export function whole(count: number | null | undefined): string {
  return isAbsent(count) ? NOT_KNOWN : decimals(count, 0)
}

/** A figure with at most one decimal: `12`, `3.2`. */
export function tenths(value: number | null | undefined): string {
  return isAbsent(value) ? NOT_KNOWN : decimals(value, Math.abs(value % 1) < 0.05 ? 0 : 1)
}

/** How many times the peak is above the mean: `12×`. */
export function peakOverMean(peak: number | null | undefined, mean: number | null | undefined): string {
  if (isAbsent(peak) || isAbsent(mean) || mean <= 0) return NOT_KNOWN
  const times = peak / mean
  return `${decimals(times, times >= 10 ? 0 : 1)}×`
}

/** A span in words: `3 s`, `4 min`, `2 h 5 min`, `3 d 4 h`. */
export function span(seconds: number | null | undefined): string {
  if (isAbsent(seconds)) return NOT_KNOWN
  const whole_s = Math.max(0, Math.round(seconds))
  if (whole_s < 120) return `${whole_s} s`
  const minutes = Math.floor(whole_s / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`
}

/** How long before the hub's own clock something was: the browser's clock plays no part. */
export function ago(at: string | null | undefined, hubNow: string): string {
  if (!at) return NOT_KNOWN
  const seconds = (Date.parse(hubNow) - Date.parse(at)) / 1000
  return Number.isNaN(seconds) ? NOT_KNOWN : `${span(seconds)} ago`
}

/** The time of day in UTC, as feeds are logged: `06:53:25Z`. */
export function timeOfDay(at: string): string {
  const moment = new Date(at)
  return Number.isNaN(moment.getTime()) ? NOT_KNOWN : `${moment.toISOString().slice(11, 19)}Z`
}

function isAbsent(value: number | null | undefined): value is null | undefined {
  return value === null || value === undefined || !Number.isFinite(value)
}

function decimals(value: number, places: number): string {
  const digits = Math.abs(value).toFixed(places)
  const [integer = '', fraction] = digits.split('.')
  const grouped = integer.length > 4 ? integer.replace(/\B(?=(\d{3})+$)/g, NARROW_SPACE) : integer
  const text = fraction === undefined ? grouped : `${grouped}.${fraction}`
  return Number(digits) === 0 ? text : signed(value) + text
}

function signed(value: number): string {
  return value < 0 ? '−' : ''
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
const NARROW_SPACE = '\u202f'
