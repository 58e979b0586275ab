/** Sources and publishers of WIS2 in words. */
import type {
  AnnouncedProduct,
  Bridge,
  BridgePace,
  BrokerHealth,
  BrokerHole,
  BrokerState,
  CentreAccount,
  Publisher,
} from '../api'
import { ago, bytes, latency, NOT_KNOWN, span, tenths, whole } from '../format'

export type Tone = 'good' | 'warn' | 'bad' | 'quiet'

export interface Said {
  tone: Tone
  sentence: string
}

/** States differ by shape too, for those who see no colours. */
export const MARKS: Record<Tone, string> = { good: '●', warn: '▲', bad: '✕', quiet: '○' }

const TONES: Record<BrokerHealth, Tone> = { good: 'good', warning: 'warn', error: 'bad', off: 'quiet' }

export function toneOf(broker: BrokerState): Tone {
  return TONES[broker.health]
}

/** The state of a connection: `connected for 2 h`, or the reason for which it is not well. */
export function stateOf(broker: BrokerState, now: string): string {
  if (broker.connected_at === null) return broker.sentence
  const since = `connected for ${span(age_s(broker.connected_at, now))}`
  return broker.health === 'good' ? since : `${broker.sentence}, ${since}`
}

/** The last message of a source's broker; a connection without any is no sign of health. */
export function lastMessage(broker: BrokerState, now: string): string {
  if (broker.last_at !== null) return ago(broker.last_at, now)
  return broker.connected_at === null ? NOT_KNOWN : 'none since the connection'
}

/** `12.5/s`, or of slow ones `30/min`. */
export function rate(perSecond: number | null): string {
  if (perSecond === null) return NOT_KNOWN
  return perSecond > 0 && perSecond < 1 ? `${tenths(perSecond * 60)}/min` : `${tenths(perSecond)}/s`
}

/** A number of seconds with the unit that reads best. */
export function seconds(value: number | null): string {
  return value === null ? NOT_KNOWN : value < 120 ? latency(value * 1000) : span(value)
}

/** The state of a source, by the brokers that bring messages. */
export function sourceState(bridge: Bridge): Said {
  if (!bridge.enabled) return { tone: 'quiet', sentence: 'Switched off: brokers keep its messages for a while.' }
  const total = bridge.brokers.length
  const well = bridge.brokers.filter((one) => one.health === 'good').length
  if (well === total) return { tone: 'good', sentence: `${of(total, 'broker')} connected, all topics bound.` }
  const worst = bridge.brokers.find((one) => one.health === 'error') ?? bridge.brokers.find(isNotGood)
  const reason = worst === undefined ? '' : reasonOf(worst)
  if (well > 0) return { tone: 'warn', sentence: `${well} of ${total} brokers in order. ${reason}` }
  const tone = bridge.brokers.every((one) => one.health === 'error') ? 'bad' : 'warn'
  return { tone, sentence: `No broker in order. ${reason}` }
}

/** The state of a publisher. */
export function publisherState(publisher: Publisher, now: string): Said {
  if (!publisher.enabled) return { tone: 'quiet', sentence: 'Switched off: nothing is announced.' }
  const { broker } = publisher
  if (broker.health !== 'good') return { tone: 'bad', sentence: reasonOf(broker) }
  return { tone: 'good', sentence: `Connected for ${span(age_s(broker.connected_at ?? now, now))}.` }
}

/** The broker's last answers to notifications. */
export function lastAnswer(publisher: Publisher, now: string): Said {
  const { broker, products } = publisher
  if (!publisher.enabled) return { tone: 'quiet', sentence: NOT_KNOWN }
  if (products.refusal !== '') return { tone: 'bad', sentence: products.refusal }
  if (broker.last_at === null) return { tone: 'quiet', sentence: 'none since the connection' }
  return { tone: 'good', sentence: `reason 0 (success), ${ago(broker.last_at, now)}` }
}

/** The latency from publication to this hub: `p50 1.2 s, p99 9.0 s`. */
export function latencies(pace: BridgePace): string {
  if (pace.products === 0) return 'not measured: no product was stored yet'
  const few = pace.products < FEW ? `, only ${whole(pace.products)} products` : ''
  return `p50 ${seconds(pace.p50_s)}, p99 ${seconds(pace.p99_s)}${few}`
}

/** Lateness is a warning from a minute on: nearest caches announce within seconds. */
export function behindTone(pace: BridgePace): Tone {
  if (pace.behind_s === null) return 'quiet'
  return pace.behind_s < LATE_S ? 'good' : 'warn'
}

export interface Budget {
  /** `95 kB of 100 kB`. */
  used: string
  /** Of the budget; null: there is none. */
  share: number | null
  /** The products that wait; empty: none. */
  waits: string
}

/** The bytes of a centre beside its budget of the day. */
export function budgetOf(account: CentreAccount, perDay: number | null): Budget {
  const used = perDay === null ? bytes(account.bytes) : `${bytes(account.bytes)} of ${bytes(perDay)}`
  const waits = account.waiting === 0 ? '' : `${of(account.waiting, 'product')} (${bytes(account.waiting_bytes)})`
  return { used, share: perDay === null ? null : account.bytes / perDay, waits }
}

/** Those that wait come first, then the largest. */
export function centresInOrder(accounts: CentreAccount[]): CentreAccount[] {
  return accounts.toSorted((one, other) => other.waiting - one.waiting || other.bytes - one.bytes)
}

/** The time of a hole: `2026-11-29 16:02:11 to 16:05:40 UTC`. */
export function timesOf(hole: BrokerHole): string {
  const from = instant(hole.from_at)
  const to = instant(hole.to_at)
  const isOneDay = from.slice(0, DAY) === to.slice(0, DAY)
  return `${from} to ${isOneDay ? to.slice(DAY + 1) : to} UTC`
}

/** A time in UTC: `2026-11-29 16:02:11`. */
export function instant(at: string): string {
  return new Date(at).toISOString().slice(0, 19).replace('T', ' ')
}

/** The verdict on a notification that would be sent. */
export function previewVerdict(preview: AnnouncedProduct): Said {
  if (preview.notification === null) {
    return { tone: 'bad', sentence: `${preview.product_id} would not be announced: ${preview.reason}.` }
  }
  return { tone: 'good', sentence: 'Valid: a notification as WIS2 requires it. Nothing was sent.' }
}

/** The newest products of a publisher. */
export function newest(products: AnnouncedProduct[], count: number): AnnouncedProduct[] {
  return products.toSorted((one, other) => other.made_at.localeCompare(one.made_at)).slice(0, count)
}

/** The host of a broker's address. */
export function hostOf(url: string): string {
  return /^\w+:\/\/([^/]+)/.exec(url)?.[1] ?? url
}

/** `1 product`, `2 products`. */
export function of(count: number, noun: string): string {
  return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`
}

/** The reason why a broker is not in order, with its host. */
function reasonOf(broker: BrokerState): string {
  const host = hostOf(broker.url)
  const isNamed = broker.sentence.includes(host.replace(/:\d+$/, ''))
  return isNamed ? `${broker.sentence}.` : `${host}: ${broker.sentence}.`
}

function isNotGood(broker: BrokerState): boolean {
  return broker.health !== 'good'
}

function age_s(at: string, now: string): number {
  return (Date.parse(now) - Date.parse(at)) / 1000
}

const DAY = 10
const FEW = 20
const LATE_S = 60
