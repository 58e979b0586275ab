/** Where a product is: the question in the address, the answer from the hub, and what a reader wants first. */

import type { Delivery, DeliveryState, Factor, Trace } from '../api'
import { latency } from '../format'
import { call } from '../hub'

export type { Delivery, DeliveryState, ProductTraced as Product, Stage, Trace as Answer } from '../api'

/** A product, and a site to which the answer is narrowed; empty for all that want it. */
export interface Question {
  product: string
  site: string
}

/** The question in an address (`#/trace/…`, `#/trace/…?site=…`); `null` if there is none. */
export function asked(hash: string): Question | null {
  if (!hash.startsWith(ADDRESS)) return null
  const [name = '', query = ''] = hash.slice(ADDRESS.length).split('?', 2)
  try {
    const product = decodeURIComponent(name)
    return product ? { product, site: new URLSearchParams(query).get('site') ?? '' } : null
  } catch {
    return null
  }
}

/** The address of a question, which can be shared. */
export function address(product: string, site = ''): string {
  const query = site.trim() ? `?${new URLSearchParams({ site: site.trim() })}` : ''
  return ADDRESS + encodeURIComponent(product.trim()) + query
}

/** Asks the hub; what it refuses is thrown as its sentence. */
export function ask({ product, site }: Question, signal: AbortSignal): Promise<Trace> {
  const query = new URLSearchParams({ limit: '3', product, ...(site ? { site } : {}) })
  return call<Trace>('GET', `products/trace?${query}`, undefined, signal)
}

/** Those who lack the product first, then the slowest, then by name. */
export function inOrder(deliveries: Delivery[]): Delivery[] {
  return [...deliveries].sort(
    (one, other) =>
      URGENCY.indexOf(one.state) - URGENCY.indexOf(other.state) ||
      (other.timing.distribution_ms ?? 0) - (one.timing.distribution_ms ?? 0) ||
      one.site.localeCompare(other.site),
  )
}

/** The size of a part of the time, or its share if no time is known. */
export function size(factor: Factor): string {
  if (factor.ms !== null) return latency(factor.ms)
  return factor.share === null ? 'not measured' : `${Math.round(factor.share * 100)} %`
}

/** What a stage is called for people. */
export function stageName(stage: string): string {
  return STAGES[stage] ?? stage
}

const ADDRESS = '#/trace/'
const URGENCY: DeliveryState[] = [
  'rejected',
  'expired',
  'dropped',
  'denied',
  'repairing',
  'waiting',
  'sending',
  'stored',
  'not-subscribed',
]
const STAGES: Record<string, string> = {
  origin: 'to the hub',
  queue: 'hub queue',
  transfer: 'transfer',
  'hub-to-last-byte': 'queue and transfer',
  store: 'site disk',
  action: 'file',
}
