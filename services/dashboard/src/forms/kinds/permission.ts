/** The feeds that a site may take, and the parts of them. */
import type { LimitShape, SiteChange, SiteWhole } from '../../api'
import { change, look } from '../../hub'
import { option } from '../command'
import { given, textOf, type Form } from '../form'
import { feedOptions, type Scene } from '../scene'

type AllowValues = { isAll: boolean; allow: string[] }
type LimitValues = { feed: string; pattern: string; not_pattern: string }

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

/** As `downburst sites limit`: the part replaces every limit that the feed has at the site. */
export async function limitFeed({ of: site, overview }: Scene): Promise<Form<LimitValues>> {
  const path = `sites/${encodeURIComponent(site)}`
  const seen = await look<SiteWhole>(path)
  const feeds = feedOptions(overview)
  return {
    title: `Limits of ${site}`,
    verb: 'Save limit',
    facts: [{ name: 'Now', value: seen.value.limits.map(limitText).join('; ') || 'all products of permitted feeds' }],
    fields: [
      { kind: 'choice', name: 'feed', label: 'Feed', options: feeds },
      {
        kind: 'text',
        name: 'pattern',
        label: 'Only ids that match',
        longest: 4096,
        hint: 'A regular expression. Deliveries beyond it stop.',
      },
      {
        kind: 'text',
        name: 'not_pattern',
        label: 'Except',
        longest: 4096,
        hint: 'Both empty: the site may take all products of the feed.',
      },
    ],
    start: { feed: feeds[0]?.value ?? '', pattern: '', not_pattern: '' },
    commands: (values) => [
      [
        ...['downburst', 'sites', 'limit', site, values.feed],
        ...option('--ok', values.pattern),
        ...option('--not', values.not_pattern),
      ],
    ],
    send: async (values) => {
      const others = seen.value.limits.filter((one) => one.feed !== values.feed)
      const limits = [...others, ...limitsOf(values)]
      await change('PATCH', path, { limits } satisfies SiteChange, seen)
      return { notice: `${site} may take ${limits.length > others.length ? 'a part' : 'all'} of ${values.feed}.` }
    },
  }
}

function limitsOf({ feed, pattern, not_pattern }: LimitValues): LimitShape[] {
  const [ok, not] = [textOf(pattern), textOf(not_pattern)]
  return ok === null && not === null ? [] : [{ feed, pattern: ok ?? '.*', ...given({ not_pattern: not }) }]
}

function limitText({ feed, pattern, not_pattern }: LimitShape): string {
  return `${feed}: ${pattern}${not_pattern ? `, not ${not_pattern}` : ''}`
}
