/** The properties of a site that exists, and the feeds that it may take. */
import type { PlaceShape, SiteChange, SiteWhole } from '../../api'
import { change, look } from '../../hub'
import { option } from '../command'
import { changedNames, numberOf, textOf, type Field, type Form, type NumberField } from '../form'
import { feedOptions, type Scene } from '../scene'

type SiteValues = {
  organisation: string
  contact: string
  text: string
  latitude: string
  longitude: string
  access_rate_mbps: string
  multicast: boolean
  multicast_interface: string
  data_connections: string
  ldm_host: string
  active: boolean
}
type AllowValues = { isAll: boolean; allow: string[] }

export async function changeSite({ of: site }: Scene): Promise<Form<SiteValues>> {
  const path = `sites/${encodeURIComponent(site)}`
  const seen = await look<SiteWhole>(path)
  const start = valuesOf(seen.value)
  return {
    title: `Properties of ${site}`,
    verb: 'Save properties',
    fields: FIELDS.map((field) => (field.kind === 'number' && start[field.name] !== '' ? kept(field) : field)),
    start,
    commands: (values) => [['downburst', 'sites', 'set', site, ...optionsOf(start, values)]],
    send: async (values) => {
      const wanted = changeOf(start, values)
      if (Object.keys(wanted).length === 0) throw new Error('No property is different yet.')
      await change('PATCH', path, wanted, seen)
      return { notice: `The properties of ${site} are saved.` }
    },
  }
}

export async function allowFeeds({ of: site, overview }: Scene): Promise<Form<AllowValues>> {
  const path = `sites/${encodeURIComponent(site)}`
  const seen = await look<SiteWhole>(path)
  const isAll = seen.value.allow.includes('*')
  const allowed = ({ isAll, allow }: AllowValues) => (isAll ? ['*'] : allow)
  return {
    title: `Permitted feeds of ${site}`,
    verb: 'Save permitted feeds',
    facts: [{ name: 'Now', value: isAll ? 'all feeds' : seen.value.allow.join(', ') || 'none' }],
    fields: [
      { kind: 'check', name: 'isAll', label: 'It may take all feeds', hint: 'Deliveries beyond the list stop.' },
      {
        kind: 'many',
        name: 'allow',
        label: 'Permitted feeds',
        options: feedOptions(overview),
        isRequired: true,
        isShown: (values) => !values.isAll,
      },
    ],
    start: { isAll, allow: seen.value.allow.filter((feed) => feed !== '*') },
    commands: (values) => [['downburst', 'sites', 'allow', site, ...allowed(values)]],
    send: async (values) => {
      await change('PATCH', path, { allow: allowed(values) } satisfies SiteChange, seen)
      return { notice: `${site} may take ${values.isAll ? 'all feeds' : values.allow.join(', ')}.` }
    },
  }
}

/** No command takes coordinates away, so that those of a site can be changed only. */
function kept(field: NumberField<SiteValues>): NumberField<SiteValues> {
  return PLACE.includes(field.name) ? { ...field, isRequired: true } : field
}

/** Only what differs; a place is always whole. */
function changeOf(start: SiteValues, values: SiteValues): SiteChange {
  const names = changedNames(start, values)
  const wanted: SiteChange = {}
  if (names.includes('organisation')) wanted.organisation = values.organisation.trim()
  if (names.includes('contact')) wanted.contact = values.contact.trim()
  if (names.some((name) => PLACE.includes(name))) wanted.place = placeOf(values)
  if (names.includes('access_rate_mbps')) wanted.access_rate_bps = bitsOf(values)
  if (names.includes('multicast')) wanted.multicast = values.multicast
  if (names.includes('multicast_interface')) wanted.multicast_interface = values.multicast_interface.trim()
  if (names.includes('data_connections')) wanted.data_connections = numberOf(values.data_connections)
  if (names.includes('ldm_host')) wanted.ldm_host = textOf(values.ldm_host)
  if (names.includes('active')) wanted.active = values.active
  return wanted
}

function optionsOf(start: SiteValues, values: SiteValues): string[] {
  const changed = changeOf(start, values)
  const has = (name: keyof SiteChange) => name in changed
  const place = changed.place ?? {}
  return [
    ...(has('organisation') ? ['--organisation', changed.organisation ?? ''] : []),
    ...(has('contact') ? ['--contact', changed.contact ?? ''] : []),
    ...(has('place') ? ['--place', place.text ?? ''] : []),
    ...option('--latitude', place.latitude),
    ...option('--longitude', place.longitude),
    ...orNone(has('access_rate_bps'), '--access-rate-bps', '--no-access-rate', changed.access_rate_bps),
    ...(has('multicast') ? [values.multicast ? '--multicast' : '--no-multicast'] : []),
    ...(has('multicast_interface') ? ['--multicast-interface', changed.multicast_interface ?? ''] : []),
    ...(has('data_connections') ? ['--data-connections', String(changed.data_connections ?? 'auto')] : []),
    ...orNone(has('ldm_host'), '--ldm-host', '--no-ldm-host', changed.ldm_host),
    ...(has('active') ? [values.active ? '--active' : '--inactive'] : []),
  ]
}

/** An option with its value, or the one that takes the value away. */
function orNone(isChanged: boolean, name: string, none: string, value: string | number | null | undefined): string[] {
  if (!isChanged) return []
  return value === null || value === undefined ? [none] : option(name, value)
}

function placeOf(values: SiteValues): PlaceShape {
  const latitude = numberOf(values.latitude)
  return { text: values.text.trim(), latitude, longitude: numberOf(values.longitude) }
}

function bitsOf(values: SiteValues): number | null {
  const megabits = numberOf(values.access_rate_mbps)
  return megabits === null ? null : Math.round(megabits * 1e6)
}

function valuesOf(site: SiteWhole): SiteValues {
  return {
    organisation: site.organisation,
    contact: site.contact,
    text: site.place.text,
    latitude: String(site.place.latitude ?? ''),
    longitude: String(site.place.longitude ?? ''),
    access_rate_mbps: site.access_rate_bps === null ? '' : String(site.access_rate_bps / 1e6),
    multicast: site.multicast,
    multicast_interface: site.multicast_interface,
    data_connections: String(site.data_connections ?? ''),
    ldm_host: site.ldm_host ?? '',
    active: site.active,
  }
}

const PLACE = ['text', 'latitude', 'longitude']
const FIELDS: Field<SiteValues>[] = [
  { kind: 'text', name: 'organisation', label: 'Organisation', longest: 500 },
  { kind: 'text', name: 'contact', label: 'Contact', longest: 500 },
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
  { kind: 'check', name: 'multicast', label: 'Multicast may serve it' },
  { kind: 'check', name: 'active', label: 'It may connect' },
  {
    kind: 'text',
    name: 'multicast_interface',
    label: 'Interface that joins groups',
    longest: 64,
    isFurther: true,
    hint: 'At the site; amt: an AMT relay sends them. Empty: the choice of the site.',
  },
  {
    kind: 'number',
    name: 'data_connections',
    label: 'Data connections beside the first',
    least: 0,
    most: 16,
    isWhole: true,
    isFurther: true,
    hint: 'Empty: as many as help.',
  },
  {
    kind: 'text',
    name: 'ldm_host',
    label: 'Host of its LDM',
    longest: 500,
    isFurther: true,
    hint: 'A regular expression, for a site that keeps its LDM. Empty: it runs a receiver.',
  },
]
