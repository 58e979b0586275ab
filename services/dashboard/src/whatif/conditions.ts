/** Conditions of a feed as sliders, fields, an address and a command have them. */
import type { Conditions, TrafficSpan, WhatIfNew } from '../api'

export type Condition = keyof Conditions

/** The conditions that differ from today's, and the arrivals to try them on. */
export interface Wanted {
  values: Partial<Record<Condition, number>>
  traffic: TrafficSpan
}

export interface Slider {
  condition: Condition
  title: string
  /** The values at which it stops, ascending. */
  stops: readonly number[]
  /** The name of the parameter in the address, which is that of the command's option. */
  key: string
  /** For a field that can't be read. */
  example: string
}

export const TODAY: Wanted = { values: {}, traffic: 'now' }

/** A value in words: `104 sites`, `200 Mb/s`, `5.00 s`. */
export function wordsOf(condition: Condition, value: number): string {
  if (condition === 'sites') return value === 1 ? '1 site' : `${value} sites`
  return fieldOf(condition, value)
}

/** A value as its field has it. */
export function fieldOf(condition: Condition, value: number): string {
  switch (condition) {
    case 'sites':
      return String(value)
    case 'egress_bps':
      return value >= 1e9 ? `${short(value / 1e9)} Gb/s` : `${short(value / 1e6)} Mb/s`
    case 'objective_ms':
      return value >= 1_000 ? `${short(value / 1_000)} s` : `${short(value)} ms`
    case 'setup_s':
      return `${short(value)} s`
  }
}

/** The value that a user entered; null if it can't be read or is outside the limits. */
export function read(condition: Condition, text: string): number | null {
  const found = /^(\d{1,6}(?:\.\d{1,6})?) ?([a-zA-Z/]*)$/.exec(text.trim())
  const factor = found === null ? undefined : UNITS[condition][(found[2] ?? '').replace(/(b|bit)\/s$/, '')]
  if (found === null || factor === undefined) return null
  const value = Number((Number(found[1]) * factor).toPrecision(12))
  const { stops } = sliderOf(condition)
  const isWithin = value >= (stops[0] ?? 0) && value <= (stops.at(-1) ?? 0)
  return isWithin && (condition !== 'sites' || Number.isInteger(value)) ? value : null
}

/** Why a field can't be used. */
export function problemOf(condition: Condition): string {
  const { title, stops, example } = sliderOf(condition)
  const [least, most] = [fieldOf(condition, stops[0] ?? 0), fieldOf(condition, stops.at(-1) ?? 0)]
  return `${title}: enter a value from ${least} to ${most}, such as ${example}.`
}

/** The place of a value between the first and the last stop, 0 to 1, as the slider's thumb has it. */
export function shareOf(slider: Slider, value: number): number {
  const { stops } = slider
  const after = stops.findIndex((stop) => stop >= value)
  if (after < 0) return 1
  const [low, high] = [stops[after - 1], stops[after]]
  if (low === undefined || high === undefined) return 0
  const inside = Math.log(value / low) / Math.log(high / low)
  return (after - 1 + inside) / (stops.length - 1)
}

/** The nearest stop to a value, by its index. */
export function indexOf(slider: Slider, value: number): number {
  return Math.round(shareOf(slider, value) * (slider.stops.length - 1))
}

/** What the address asks for; anything that can't be read counts as today's. */
export function wantedOf(query: URLSearchParams): Wanted {
  const values: Wanted['values'] = {}
  for (const { condition, key } of SLIDERS) {
    const value = read(condition, query.get(key) ?? '')
    if (value !== null) values[condition] = value
  }
  return { values, traffic: query.get('traffic') === 'busiest' ? 'busiest' : 'now' }
}

/** The parameters of the address that reproduce it. */
export function queryOf({ values, traffic }: Wanted): Record<string, string | null> {
  const given = SLIDERS.map(({ condition, key }) => {
    const value = values[condition]
    return [key, value === undefined ? null : exact(condition, value)] as const
  })
  return { ...Object.fromEntries(given), traffic: traffic === 'busiest' ? traffic : null }
}

/** The command that tries the same: `downburst plans what-if NGRID --sites 104`. */
export function commandOf(feed: string, wanted: Wanted): string {
  const options = Object.entries(queryOf(wanted)).filter(([, value]) => value !== null)
  return ['downburst plans what-if', quoted(feed), ...options.map(([key, value]) => `--${key} ${value}`)].join(' ')
}

/** The request that asks the hub. */
export function requestOf({ values, traffic }: Wanted, flips: boolean): WhatIfNew {
  return { ...values, traffic, flips }
}

/** The conditions with one changed. */
export function withValue(wanted: Wanted, condition: Condition, value: number): Wanted {
  return { ...wanted, values: { ...wanted.values, [condition]: value } }
}

export function isToday({ values, traffic }: Wanted): boolean {
  return Object.keys(values).length === 0 && traffic === 'now'
}

/** `at 23 sites: multicast`. */
export function flipWords(condition: Condition, at: number, transport: string): string {
  return `at ${wordsOf(condition, at)}: ${transport}`
}

function exact(condition: Condition, value: number): string {
  if (condition === 'egress_bps') return `${Number((value / 1e6).toPrecision(12))}M`
  if (condition === 'objective_ms') return value % 1_000 === 0 ? `${value / 1_000}s` : `${value}ms`
  return condition === 'setup_s' ? `${value}s` : String(value)
}

function sliderOf(condition: Condition): Slider {
  return SLIDERS.find((one) => one.condition === condition) as Slider
}

/** Stops on a logarithmic scale, each with two digits; whole ones only once. */
function stopsOf(least: number, most: number, perDecade: number): number[] {
  const count = Math.ceil(Math.log10(most / least) * perDecade)
  const all = Array.from({ length: count }, (_, at) => Number((least * 10 ** (at / perDecade)).toPrecision(2)))
  return [...new Set([...all, most])]
}

function wholeStops(most: number): number[] {
  const fine = Array.from({ length: FINE_TO }, (_, at) => at + 1)
  const coarse = stopsOf(FINE_TO, most, 50).map(Math.round)
  return [...new Set([...fine, ...coarse])]
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)))
}

function quoted(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

const FINE_TO = 50
const UNITS: Record<Condition, Record<string, number>> = {
  sites: { '': 1, site: 1, sites: 1 },
  egress_bps: { k: 1e3, M: 1e6, G: 1e9 },
  objective_ms: { ms: 1, s: 1_000, m: 60_000 },
  setup_s: { ms: 1e-3, s: 1, m: 60, h: 3_600 },
}
/** The limits are those of the hub's API. */
export const SLIDERS: readonly Slider[] = [
  { condition: 'sites', title: 'Sites', stops: wholeStops(500), key: 'sites', example: '104' },
  { condition: 'egress_bps', title: 'Free egress', stops: stopsOf(1e6, 400e9, 20), key: 'egress', example: '200 Mb/s' },
  {
    condition: 'objective_ms',
    title: 'Objective, p99',
    stops: stopsOf(10, 600_000, 20),
    key: 'objective',
    example: '5 s',
  },
  { condition: 'setup_s', title: 'Circuit set-up', stops: stopsOf(0.1, 3_600, 20), key: 'setup', example: '10 s' },
]
