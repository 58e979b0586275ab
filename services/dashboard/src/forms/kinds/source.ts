/** Sources of products: another hub, LDMs that are asked, and LDMs that push. */
import type { LdmAccept, LdmAcceptNew, LdmSource, LdmSourceNew, Upstream, UpstreamNew } from '../../api'
import { call } from '../../hub'
import { names } from '../../selfservice'
import { each, GAP, option, orGap } from '../command'
import { given, numberOf, textOf, type Field, type Form, type TextField, type Values } from '../form'
import { feedOptions, type Scene } from '../scene'
import { SITE_NAME } from '../shapes'

type UpstreamValues = { upstream: string; address: string; token: string; feeds: string[] }
type AskValues = { source: string; feeds: string; upstreams: string; pattern: string; max_age_s: string }
type AcceptValues = { feeds: string; host: string; pattern: string }

export function addUpstream({ overview }: Scene): Form<UpstreamValues> {
  const feeds: Field<UpstreamValues> = {
    kind: 'many',
    name: 'feeds',
    label: 'Feeds',
    options: feedOptions(overview),
    hint: 'None chosen: all that both hubs have.',
  }
  return {
    title: 'Add upstream',
    verb: 'Add upstream',
    fields: [...UPSTREAM, feeds],
    start: { upstream: '', address: '', token: '', feeds: [] },
    commands: ({ upstream, address, feeds }) => [
      [
        ...['downburst', 'upstreams', 'add', orGap(upstream), '--from', orGap(address)],
        ...['--token-file', `${textOf(upstream) ?? 'upstream'}.token`, ...each('--feed', feeds)],
      ],
    ],
    send: async (values) => {
      const wanted: UpstreamNew = {
        upstream: textOf(values.upstream) ?? '',
        address: textOf(values.address) ?? '',
        token: textOf(values.token) ?? '',
        feeds: values.feeds,
      }
      const made = await call<Upstream>('POST', 'upstreams', wanted)
      return { notice: `The hub takes ${made.feeds.join(', ') || 'all common feeds'} from ${made.upstream}.` }
    },
  }
}

export function askLdm(): Form<AskValues> {
  return {
    title: 'Add LDM source',
    verb: 'Add LDM source',
    fields: ASK,
    start: { source: '', feeds: '', upstreams: '', pattern: '', max_age_s: '' },
    commands: (values) => [
      [
        ...['downburst', 'ldm', 'ask', orGap(values.source), orGap(values.feeds)],
        ...(names(values.upstreams).length > 0 ? names(values.upstreams) : [GAP]),
        ...option('--pattern', values.pattern),
        ...option('--max-age-s', values.max_age_s),
      ],
    ],
    send: async (values) => {
      const wanted: LdmSourceNew = {
        source: textOf(values.source) ?? '',
        feeds: textOf(values.feeds) ?? '',
        upstreams: names(values.upstreams),
        ...given({ pattern: textOf(values.pattern), max_age_s: numberOf(values.max_age_s) }),
      }
      const made = await call<LdmSource>('POST', 'ldm/sources', wanted)
      return { notice: `The hub requests ${made.feeds} from ${made.upstreams.join(', ')}.` }
    },
  }
}

export function acceptLdm(): Form<AcceptValues> {
  return {
    title: 'Let an LDM push',
    verb: 'Permit pushes',
    fields: [TYPES as Field<AcceptValues>, HOST, PATTERN as Field<AcceptValues>],
    start: { feeds: '', host: '', pattern: '' },
    commands: ({ feeds, host, pattern }) => [
      ['downburst', 'ldm', 'accept', orGap(feeds), orGap(host), ...option('--pattern', pattern)],
    ],
    send: async (values) => {
      const wanted: LdmAcceptNew = {
        feeds: textOf(values.feeds) ?? '',
        host: textOf(values.host) ?? '',
        ...given({ pattern: textOf(values.pattern) }),
      }
      const made = await call<LdmAccept>('POST', 'ldm/accepts', wanted)
      return { notice: `Hosts that match ${made.host} may push ${made.feeds}.` }
    },
  }
}

const UPSTREAM: Field<UpstreamValues>[] = [
  {
    kind: 'text',
    name: 'upstream',
    label: 'Name here',
    isRequired: true,
    longest: 63,
    placeholder: 'unidata',
    shape: SITE_NAME,
  },
  {
    kind: 'text',
    name: 'address',
    label: 'Address of the other hub for its sites',
    isRequired: true,
    longest: 260,
    placeholder: 'idd.example.edu:7370',
    shape: { pattern: /^\S+:[0-9]{1,5}$/, sentence: 'The address is HOST:PORT, as in idd.example.edu:7370.' },
  },
  {
    kind: 'text',
    name: 'token',
    label: 'Enrolment token',
    isRequired: true,
    longest: 512,
    isSecret: true,
    shape: { pattern: /^dbt1\.[0-9a-f]{64}\.[\w-]+$/i, sentence: 'An enrolment token begins with dbt1.' },
    hint: 'From the operator of the other hub. The command reads it from a file.',
  },
]
const TYPES: Omit<TextField<Values>, 'name'> & { name: 'feeds' } = {
  kind: 'text',
  name: 'feeds',
  label: 'Feed types',
  isRequired: true,
  longest: 500,
  placeholder: 'IDS|DDPLUS',
  hint: 'As LDM names them. A feed of the hub has to have them.',
}
const PATTERN: Omit<TextField<Values>, 'name'> & { name: 'pattern' } = {
  kind: 'text',
  name: 'pattern',
  label: 'Pattern',
  longest: 255,
  hint: 'A regular expression on identifiers. Empty: all products.',
}
const HOST: Field<AcceptValues> = {
  kind: 'text',
  name: 'host',
  label: 'Host',
  isRequired: true,
  longest: 500,
  placeholder: '^ldm\\.example\\.edu$',
  hint: 'A regular expression on its name in lower case, or on its address.',
}
const ASK: Field<AskValues>[] = [
  {
    kind: 'text',
    name: 'source',
    label: 'Name here',
    isRequired: true,
    longest: 63,
    placeholder: 'unidata',
    shape: SITE_NAME,
  },
  TYPES as Field<AskValues>,
  {
    kind: 'text',
    name: 'upstreams',
    label: 'LDMs',
    isRequired: true,
    longest: 2100,
    placeholder: 'idd.unidata.ucar.edu idd.unl.edu',
    hint: 'HOST or HOST:PORT, the preferred one first, at most eight, with spaces between them.',
  },
  PATTERN as Field<AskValues>,
  {
    kind: 'number',
    name: 'max_age_s',
    label: 'Oldest products',
    unit: 's',
    least: 1,
    most: 31_622_400,
    isWhole: true,
    hint: 'Older ones are neither requested nor accepted. Empty: 3600 s.',
  },
]
