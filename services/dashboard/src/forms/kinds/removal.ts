/** Removals. The name is typed first where products or credentials are removed as well. */
import type { Feed, LdmAccept, LdmSource, SiteWhole, Subscription, Upstream } from '../../api'
import { call, change, look } from '../../hub'
import { addressOf } from '../../route'
import type { Field, Form, Preview, Values } from '../form'
import type { Scene } from '../scene'

type Typed = { name: string }
type SourceValues = { source: string }

export async function removeFeed({ of: feed }: Scene): Promise<Form<Typed>> {
  const path = `feeds/${encodeURIComponent(feed)}`
  const [seen, wishes] = await Promise.all([
    look<Feed>(path),
    call<Subscription[]>('GET', `subscriptions?feed=${encodeURIComponent(feed)}`),
  ])
  const sites = [...new Set(wishes.map((one) => one.site))].toSorted()
  return {
    title: `Remove ${feed}`,
    verb: 'Remove feed',
    isDangerous: true,
    facts: [{ name: 'Removed as well', value: 'its products in the log, and the subscriptions to it' }],
    fields: [typed(feed)],
    start: { name: '' },
    commands: () => [['downburst', 'feeds', 'remove', feed, '--yes']],
    send: async () => {
      await change('DELETE', path, undefined, seen)
      return { notice: `Feed ${feed} is removed.`, next: addressOf('feeds') }
    },
    preview: () => Promise.resolve(ended(sites, `No site takes ${feed}.`, (all) => `No longer sent to ${all}.`)),
  }
}

export async function removeSite({ of: site }: Scene): Promise<Form<Typed>> {
  const path = `sites/${encodeURIComponent(site)}`
  const seen = await look<SiteWhole>(path)
  const feeds = [...new Set(seen.value.subscriptions.map((one) => one.feed))].toSorted()
  return {
    title: `Remove ${site}`,
    verb: 'Remove site',
    isDangerous: true,
    facts: [{ name: 'Removed as well', value: 'subscriptions, credentials and enrolment tokens' }],
    fields: [typed(site)],
    start: { name: '' },
    commands: () => [['downburst', 'sites', 'remove', site, '--yes']],
    send: async () => {
      await change('DELETE', path, undefined, seen)
      return { notice: `Site ${site} is removed.`, next: addressOf('sites') }
    },
    preview: () =>
      Promise.resolve(ended(feeds, `${site} takes no feed.`, (all) => `${site} no longer receives ${all}.`)),
  }
}

/** An upstream, an LDM that is asked, or a host that may push. */
export async function removeSource(): Promise<Form<SourceValues>> {
  const sources = await allSources()
  const [first] = sources
  if (first === undefined) throw new Error('This hub has no upstream, no LDM source and no host that may push.')
  const chosen = ({ source }: SourceValues) => sources.find((one) => one.path === source) ?? first
  return {
    title: 'Remove source',
    verb: 'Remove source',
    isDangerous: true,
    fields: [{ kind: 'choice', name: 'source', label: 'Source', options: sources.map(optionOf) }],
    start: { source: first.path },
    commands: (values) => [chosen(values).command],
    send: async (values) => {
      const { path, label } = chosen(values)
      await call('DELETE', path)
      return { notice: `Removed: ${label}.` }
    },
    preview: (values) => {
      const sentence = `The hub takes ${chosen(values).feeds} from it no longer. Stored products stay.`
      return Promise.resolve({ sentence, columns: NONE, rows: [] })
    },
  }
}

export function removeUser({ of: user }: Scene): Form<Values> {
  return {
    title: `Remove ${user}`,
    verb: 'Remove user',
    isDangerous: true,
    facts: [{ name: 'User', value: `${user}, signed out immediately` }],
    fields: [],
    start: {},
    commands: () => [['downburst', 'users', 'remove', user, '--yes']],
    send: async () => {
      await call('DELETE', `users/${encodeURIComponent(user)}`)
      return { notice: `User ${user} is removed.` }
    },
  }
}

interface Source {
  /** Of the request. */
  path: string
  label: string
  feeds: string
  command: string[]
}

async function allSources(): Promise<Source[]> {
  const [upstreams, asked, accepted] = await Promise.all([
    call<Upstream[]>('GET', 'upstreams'),
    call<LdmSource[]>('GET', 'ldm/sources'),
    call<LdmAccept[]>('GET', 'ldm/accepts'),
  ])
  return [...upstreams.map(ofUpstream), ...asked.map(ofLdm), ...accepted.map(ofPush)]
}

const ofUpstream = (one: Upstream): Source => ({
  path: `upstreams/${encodeURIComponent(one.upstream)}`,
  label: `upstream ${one.upstream}`,
  feeds: one.feeds.join(', ') || 'all common feeds',
  command: ['downburst', 'upstreams', 'remove', one.upstream, '--yes'],
})

const ofLdm = (one: LdmSource): Source => ({
  path: `ldm/sources/${encodeURIComponent(one.source)}`,
  label: `LDM source ${one.source}`,
  feeds: one.feeds,
  command: ['downburst', 'ldm', 'forget', one.source],
})

const ofPush = (one: LdmAccept): Source => ({
  path: `ldm/accepts/${one.id}`,
  label: `pushes of ${one.host}`,
  feeds: one.feeds,
  command: ['downburst', 'ldm', 'refuse', String(one.id)],
})

const optionOf = ({ path, label, feeds }: Source) => ({ value: path, label, note: feeds })

/** The name again, so that a slip of the mouse removes nothing. */
function typed(name: string): Field<Typed> {
  const sentence = `Type ${name} to remove it.`
  const pattern = new RegExp(`^${name.replace(/[^\w]/g, '\\$&')}$`)
  const shape = { pattern, sentence }
  return { kind: 'text', name: 'name', label: `Type ${name}`, isRequired: true, longest: 64, shape }
}

/** The deliveries that end, in one sentence. */
function ended(names: readonly string[], none: string, some: (names: string) => string): Preview {
  const others = names.length - MOST_NAMES
  const all = `${names.slice(0, MOST_NAMES).join(', ')}${others > 0 ? ` and ${others} more` : ''}`
  return { sentence: names.length === 0 ? none : some(all), columns: NONE, rows: [] }
}

const MOST_NAMES = 8
const NONE: Preview['columns'] = ['', '']
