/** Circuits on demand in words: offers, the providers behind them, and orders. */
import type {
  CircuitOffer as Offer,
  CircuitOffers as Offers,
  CircuitOfferWanted as OfferWanted,
  CircuitOrder as Order,
  CircuitOrderPage as OrderPage,
  CircuitProvider as Provider,
  CircuitProviders as Providers,
  Dialect,
} from './api'
import { latency, megabits, span, tenths, timeOfDay, whole } from './format'
import { names } from './selfservice'
import type { Tone } from './view'

export type { Offer, Offers, Order, OrderPage, Provider, Providers }

/** The rates that can be ordered: `100, 200, 1000`. */
export function ratesOf(rates_bps: number[]): string {
  return rates_bps.map((rate) => megabits(rate)).join(', ')
}

/** The set-up times of an offer: the statement and the measurement, which counts as soon as there is one. */
export function setupsOf(offer: Offer): { stated: string; measured: string } {
  const { measured } = offer
  const figures = measured && `median ${latency(measured.median_s * 1000)}, p90 ${latency(measured.p90_s * 1000)}`
  return {
    stated: `${tenths(offer.setup_s)} s stated`,
    measured: measured ? `measured: ${figures} (${counted(measured.count, 'order')})` : 'not measured yet',
  }
}

/** The use of a budget today: `share` is null without a limit, and at most 1. */
export interface Spent {
  text: string
  share: number | null
}

export function budgetOf(offer: Offer): Spent[] {
  const { circuit_hours, orders } = offer.used_today
  return [
    spent(circuit_hours, offer.circuit_hours_a_day, tenths, 'circuit-hours'),
    spent(orders, offer.orders_a_day, whole, 'orders'),
  ]
}

function spent(used: number, most: number | null, say: (value: number) => string, unit: string): Spent {
  if (most === null) return { text: `${say(used)} ${unit}, no limit`, share: null }
  const share = most > 0 ? Math.min(used / most, 1) : 1
  return { text: `${say(used)} of ${say(most)} ${unit}`, share }
}

/** The fields of an offer's form: a field of a number is null while it is empty. */
export interface OfferFields extends Pick<
  Offer,
  'offer' | 'provider' | 'hub_port' | 'price' | 'circuit_hours_a_day' | 'orders_a_day'
> {
  ports: string
  rates_mbps: string
  setup_s: number | null
  least_hold_s: number | null
}

export const NO_OFFER: OfferFields = {
  offer: '',
  provider: 'linux',
  hub_port: '',
  ports: '',
  rates_mbps: '',
  price: null,
  setup_s: 60,
  least_hold_s: 0,
  circuit_hours_a_day: null,
  orders_a_day: null,
}

export function fieldsOf(offer: Offer): OfferFields {
  const { provider, hub_port, price, setup_s, least_hold_s, circuit_hours_a_day, orders_a_day } = offer
  const lists = { ports: offer.ports.join(' '), rates_mbps: offer.rates_bps.map((rate) => rate / 1e6).join(' ') }
  const budget = { circuit_hours_a_day, orders_a_day }
  return { offer: offer.offer, provider, hub_port, ...lists, price, setup_s, least_hold_s, ...budget }
}

/** The offer that the fields describe; throws a sentence for a rate that is no number. */
export function offerOf(fields: OfferFields): OfferWanted {
  const { provider, hub_port, price, circuit_hours_a_day, orders_a_day } = fields
  const rates_bps = names(fields.rates_mbps).map(rateOf).toSorted((one, other) => one - other)
  const times = { setup_s: fields.setup_s ?? 0, least_hold_s: fields.least_hold_s ?? 0 }
  const budget = { circuit_hours_a_day, orders_a_day }
  return { provider, hub_port, ports: names(fields.ports), rates_bps, price, ...times, ...budget }
}

function rateOf(text: string): number {
  const rate_mbps = Number(text)
  if (!Number.isFinite(rate_mbps)) throw new Error(`The rate “${text}” is not a number of Mb/s.`)
  return Math.round(rate_mbps * 1e6)
}

/** The step of an order, and whether it is the wanted one. */
export function stepOf(order: Order): { text: string; tone: Tone } {
  if (order.step === 'would-order') return { text: 'dry run', tone: 'quiet' }
  const tone = order.step === 'up' ? 'good' : hasFailed(order) ? 'bad' : 'quiet'
  return { text: order.step, tone }
}

/** Whether an order came to nothing, or to less than it asked for. */
export function hasFailed(order: Order): boolean {
  return order.step === 'refused' || order.step === 'failed'
}

/** The time for which an order's circuit is reserved, so far; null for an order that never had one. */
export function reserved_s(order: Order, now: string): number | null {
  if (order.step === 'would-order' || order.step === 'refused') return null
  return Math.max((Date.parse(order.ended_at ?? now) - Date.parse(order.ordered_at)) / 1000, 0)
}

/** Orders seen before with those that arrived, the newest first; an order that arrived replaces itself. */
export function merged(seen: Order[], arrived: Order[]): Order[] {
  const byNumber = new Map([...seen, ...arrived].map((order) => [order.order, order]))
  return [...byNumber.values()].toSorted((one, other) => other.order - one.order)
}

/** The window of an order: `12 min`, and for an open one `12 min so far, until 15:04:05Z`. */
export function windowOf(order: Order, now: string): string {
  const seconds = reserved_s(order, now)
  const isOpen = seconds !== null && order.ended_at === null
  return isOpen ? `${span(seconds)} so far, until ${timeOfDay(order.until)}` : span(seconds)
}

export function counted(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** A text field of a provider's form. */
export interface TextField {
  name: 'url' | 'provider_nsa' | 'requester_nsa' | 'certificate' | 'key' | 'authorities' | 'reply_to' | 'service_type'
  title: string
  hint: string
  required?: boolean
}

export const DIALECTS: Dialect[] = ['capacity', 'p2ps', 'none']
export const PROVIDER_FIELDS: TextField[] = [
  { name: 'url', title: 'URL', hint: 'https://nsi.example.net/soap/connection/provider', required: true },
  { name: 'provider_nsa', title: 'NSA of the provider', hint: 'urn:ogf:network:example.net:nsa', required: true },
  { name: 'requester_nsa', title: 'NSA of this hub', hint: 'urn:ogf:network:example.edu:nsa', required: true },
  { name: 'certificate', title: 'Certificate file', hint: 'without TLS: none' },
  { name: 'key', title: 'Key file', hint: 'without TLS: none' },
  { name: 'authorities', title: 'Authorities file', hint: 'without TLS: none' },
  { name: 'reply_to', title: 'Reply address', hint: 'none' },
  { name: 'service_type', title: 'Service type', hint: 'default' },
]

/** The text fields of a provider, empty for a new one. */
export function textsOf(provider: Provider | null): Record<string, string> {
  return Object.fromEntries(PROVIDER_FIELDS.map(({ name }) => [name, provider?.[name] ?? '']))
}
