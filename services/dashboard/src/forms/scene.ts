/** Where a form opens: the thing it is for, the hub as last seen, and the user. */
import type { Who } from '../access'
import type { Overview } from '../overview'
import type { Option } from './form'

export interface Scene {
  /** The name of the thing that the form is for; empty for a new one. */
  of: string
  overview: Overview
  who: Who
}

/** The hub's feeds to choose from, by name. */
export function feedOptions(overview: Overview): Option[] {
  return overview.feeds
    .map((one) => ({ value: one.feed, label: one.feed, note: one.class }))
    .toSorted((one, other) => one.label.localeCompare(other.label))
}

/** The hub's sites to choose from, by name. */
export function siteOptions(overview: Overview): Option[] {
  return overview.sites
    .filter((one) => !one.relay)
    .map((one) => ({ value: one.site, label: one.site }))
    .toSorted((one, other) => one.label.localeCompare(other.label))
}
