/** The facts of a site that a new one and one that exists share: who runs it, its place, and its link. */
import { numberOf, type CheckField, type Field } from '../form'

export type SiteFacts = {
  organisation: string
  contact: string
  text: string
  latitude: string
  longitude: string
  access_rate_mbps: string
}

export const FACTS: Field<SiteFacts>[] = [
  { kind: 'text', name: 'organisation', label: 'Organisation', longest: 500 },
  { kind: 'text', name: 'contact', label: 'Contact', longest: 500, placeholder: 'ops@unl.edu' },
  { kind: 'text', name: 'text', label: 'Name of the place', longest: 500 },
  { kind: 'number', name: 'latitude', label: 'Latitude', unit: 'degrees north', least: -90, most: 90 },
  { kind: 'number', name: 'longitude', label: 'Longitude', unit: 'degrees east', least: -180, most: 180 },
  {
    kind: 'number',
    name: 'access_rate_mbps',
    label: 'Access rate',
    unit: 'Mb/s',
    least: 0.000001,
    most: 1_000_000_000,
    hint: 'Of its link to the network. Empty: not known.',
  },
]
export const MULTICAST: CheckField<{ multicast: boolean }> = {
  kind: 'check',
  name: 'multicast',
  label: 'Multicast may serve it',
}

/** The access rate in bits per second; null: not known. */
export function accessRateOf({ access_rate_mbps }: SiteFacts): number | null {
  const megabits = numberOf(access_rate_mbps)
  return megabits === null ? null : Math.round(megabits * 1e6)
}
