/** The way of a product through bridges, in lines: its notification of WIS2, and its announcements by publishers. */

import type { ProductTraced } from './api'
import { latency } from './format'

type Way = Pick<ProductTraced, 'bridged' | 'stored_at'>

/** The way to this hub's log; none for a product that came otherwise. */
export function arrival(product: Way): string | null {
  const { statement } = product.bridged
  if (statement === null) return null
  const published = `Published to WIS2 by ${statement.centre} at ${clock(statement.published_at)}`
  const { heard } = statement
  if (heard === null) return `${published}, stored here ${between(statement.published_at, product.stored_at)} later`
  const waited = between(statement.published_at, heard.heard_at)
  const fetched = between(heard.heard_at, product.stored_at)
  return `${published}, heard by ${heard.bridge} ${waited} later, stored ${fetched} after that`
}

/** A line for each announcement or refusal. */
export function announcements(product: Way): string[] {
  return product.bridged.announced.map(({ publisher, step, announced_at, reason }) => {
    if (announced_at !== null) return `Announced to WIS2 by ${publisher} at ${clock(announced_at)}`
    return `Publisher ${publisher}: ${step}${reason ? ` (${reason})` : ''}`
  })
}

/** The properties of a product, laid out; as they came if they are no JSON. */
export function laidOut(properties: string): string {
  try {
    return JSON.stringify(JSON.parse(properties), null, 2)
  } catch {
    return properties
  }
}

function clock(instant: string): string {
  return `${instant.slice(0, 19).replace('T', ' ')} UTC`
}

/** Of different clocks it may be negative. */
function between(begin: string, end: string): string {
  return latency(Date.parse(end) - Date.parse(begin))
}
