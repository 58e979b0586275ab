/** The properties of a site that exists. */
import type { PlaceShape, SiteChange, SiteWhole } from '../../api'
import { change, look } from '../../hub'
import { option } from '../command'
import { changedNames, numberOf, textOf, type Field, type Form, type NumberField } from '../form'
import type { Scene } from '../scene'
import { accessRateOf, FACTS, MULTICAST, type SiteFacts } from './sitefacts'

type SiteValues = SiteFacts & {
  multicast: boolean
  multicast_interface: string
  data_connections: string
  ldm_host: string
  active: boolean
}

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
  if (names.includes('access_rate_mbps')) wanted.access_rate_bps = accessRateOf(values)
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
  ...FACTS,
  MULTICAST,
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
