/** A new site. */
import type { SiteNew } from '../../api'
import { call } from '../../hub'
import { each, option, orGap } from '../command'
import { given, numberOf, textOf, type Field, type Form } from '../form'
import { feedOptions, type Scene } from '../scene'
import { SITE_NAME } from '../shapes'
import { accessRateOf, FACTS, MULTICAST, type SiteFacts } from './sitefacts'

type SiteValues = SiteFacts & {
  site: string
  isLimited: boolean
  allow: string[]
  multicast: boolean
}

export function addSite({ overview }: Scene): Form<SiteValues> {
  return {
    title: 'Add site',
    verb: 'Add site',
    fields: [...FIELDS, allowField(overview), MULTICAST],
    start: START,
    commands: (values) => [
      [
        ...['downburst', 'sites', 'add', orGap(values.site)],
        ...option('--organisation', values.organisation),
        ...option('--contact', values.contact),
        ...option('--place', values.text),
        ...option('--latitude', values.latitude),
        ...option('--longitude', values.longitude),
        ...option('--access-rate-bps', accessRateOf(values)),
        ...(values.isLimited ? each('--allow', values.allow) : []),
        ...(values.multicast ? [] : ['--no-multicast']),
      ],
    ],
    send: async (values) => {
      const made = await call<{ site: string }>('POST', 'sites', requestOf(values))
      return { notice: `Site ${made.site} exists. It needs subscriptions and an enrolment token.` }
    },
  }
}

export function requestOf(values: SiteValues): SiteNew {
  const place = given({
    text: textOf(values.text),
    latitude: numberOf(values.latitude),
    longitude: numberOf(values.longitude),
  })
  return {
    site: textOf(values.site) ?? '',
    multicast: values.multicast,
    ...given({
      organisation: textOf(values.organisation),
      contact: textOf(values.contact),
      place: Object.keys(place).length > 0 ? place : null,
      access_rate_bps: accessRateOf(values),
      allow: values.isLimited ? values.allow : null,
    }),
  }
}

function allowField(overview: Scene['overview']): Field<SiteValues> {
  return {
    kind: 'many',
    name: 'allow',
    label: 'Permitted feeds',
    options: feedOptions(overview),
    isRequired: true,
    isShown: (values) => values.isLimited,
  }
}

const START: SiteValues = {
  site: '',
  organisation: '',
  contact: '',
  text: '',
  latitude: '',
  longitude: '',
  access_rate_mbps: '',
  isLimited: false,
  allow: [],
  multicast: true,
}
const FIELDS: Field<SiteValues>[] = [
  {
    kind: 'text',
    name: 'site',
    label: 'Name',
    isRequired: true,
    longest: 63,
    placeholder: 'unl.edu',
    shape: SITE_NAME,
  },
  ...FACTS,
  { kind: 'check', name: 'isLimited', label: 'Only some feeds are permitted' },
]
