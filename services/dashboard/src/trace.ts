/** Where a product is: the question in the address, the answer from the hub, and what a reader wants first. */

import type { Delivery, DeliveryState, Factor, Stage, Trace } from './api'
import { latency } from './format'
import { call } from './hub'

export type { Delivery, DeliveryState, ProductTraced as Product, Stage, Trace as Answer } from './api'

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

/** The sum of a product's stages at a site, from the hub's log to the file; unknown ones count as zero. */
export function whole_ms(stages: Stage[]): number {
  return known(stages).reduce((sum, stage) => sum + (stage.ms ?? 0), 0)
}

/** The longest whole of some deliveries: the scale of their bars. */
export function longest_ms(deliveries: Delivery[]): number {
  return Math.max(...deliveries.map((one) => whole_ms(one.timing.stages)), 0)
}

/**
 * The stages as parts of a bar, in per cent of `scale_ms`, so that bars of one product can be compared. A negative
 * stage is named, but has no length.
 */
export function bar(stages: Stage[], scale_ms: number): Part[] {
  return known(stages).map(({ stage, ms, bound_ms }) => {
    const share = scale_ms > 0 ? Math.max((100 * (ms ?? 0)) / scale_ms, 0) : 0
    return { stage, ms: ms ?? 0, bound_ms, share }
  })
}

interface Part {
  stage: string
  ms: number
  bound_ms: number | null
  share: number
}

function known(stages: Stage[]): Stage[] {
  return stages.filter((stage) => stage.stage !== 'origin' && (stage.ms ?? 0) !== 0)
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
