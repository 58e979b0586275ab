/** Latency objectives: of a feed at all sites, and of a feed at one. */
import type { Feed, Objective, ObjectiveWanted } from '../../api'
import { objectiveInWords } from '../../alarms'
import { latency } from '../../format'
import { call } from '../../hub'
import { option, orGap } from '../command'
import { given, numberOf, type Field, type Form, type NumberField } from '../form'
import { feedOptions, type Scene } from '../scene'

type FeedValues = { objective_ms: string }
type SiteValues = { feed: string; objective_ms: string; percentile: string; minutes: string }

export async function feedObjective({ of: feed }: Scene): Promise<Form<FeedValues>> {
  const path = `feeds/${encodeURIComponent(feed)}`
  const now = await call<Feed>('GET', path)
  return {
    title: `Objective of ${feed}`,
    verb: 'Set objective',
    facts: [{ name: 'Now', value: latency(now.objective_ms) }],
    fields: [{ ...LIMIT, name: 'objective_ms', hint: 'It applies at all sites without an objective of their own.' }],
    start: { objective_ms: String(now.objective_ms) },
    commands: ({ objective_ms }) => [['downburst', 'objectives', 'set', feed, orGap(objective_ms)]],
    send: async (values) => {
      const objective_ms = numberOf(values.objective_ms)
      await call<Feed>('PATCH', path, { objective_ms })
      return { notice: `The objective of ${feed} is ${latency(objective_ms)}.` }
    },
  }
}

export async function siteObjective({ of: site, overview }: Scene): Promise<Form<SiteValues>> {
  const own = await call<Objective[]>('GET', `objectives?site=${encodeURIComponent(site)}`)
  const options = feedOptions(overview).map((one) => ({ ...one, note: noteOf(one.value, own, overview) }))
  return {
    title: `Objective at ${site}`,
    verb: 'Set objective',
    fields: [{ kind: 'choice', name: 'feed', label: 'Feed', options }, ...JUDGED],
    start: { feed: firstFeed(site, overview), objective_ms: '', percentile: '', minutes: '' },
    commands: (values) => [
      [
        ...['downburst', 'objectives', 'set', orGap(values.feed), orGap(values.objective_ms), '--site', site],
        ...option('--quantile', quantileOf(values)),
        ...option('--minutes', values.minutes),
      ],
    ],
    send: async (values) => {
      const path = `feeds/${encodeURIComponent(values.feed)}/objectives/${encodeURIComponent(site)}`
      const made = await call<Objective>('PUT', path, wantedOf(values))
      return { notice: `Objective of ${made.feed} at ${site}: ${objectiveInWords(made)}.` }
    },
  }
}

function wantedOf(values: SiteValues): ObjectiveWanted {
  return {
    objective_ms: numberOf(values.objective_ms) ?? 0,
    ...given({ quantile: quantileOf(values), minutes: numberOf(values.minutes) }),
  }
}

/** Without the noise of a division by 100. */
function quantileOf(values: SiteValues): number | null {
  const percentile = numberOf(values.percentile)
  return percentile === null ? null : Number((percentile / 100).toFixed(6))
}

function noteOf(feed: string, own: readonly Objective[], overview: Scene['overview']): string {
  const its = own.find((one) => one.feed === feed)
  if (its !== undefined) return objectiveInWords(its)
  return `${latency(overview.feeds.find((one) => one.feed === feed)?.objective_ms)} at all sites`
}

/** A feed that the site takes, if it takes any. */
function firstFeed(site: string, overview: Scene['overview']): string {
  const taken = overview.sites.find((one) => one.site === site)?.feeds[0]?.feed
  return taken ?? feedOptions(overview)[0]?.value ?? ''
}

const LIMIT: Omit<NumberField<FeedValues & SiteValues>, 'name'> = {
  kind: 'number',
  label: 'Latency, from log to log',
  unit: 'ms',
  isRequired: true,
  least: 0.001,
  most: 86_400_000,
}
const JUDGED: Field<SiteValues>[] = [
  { ...(LIMIT as NumberField<SiteValues>), name: 'objective_ms' },
  {
    kind: 'number',
    name: 'percentile',
    label: 'Deliveries that have to meet it',
    unit: '%',
    least: 0.01,
    most: 99.99,
    hint: 'Empty: as the settings of the hub say.',
  },
  {
    kind: 'number',
    name: 'minutes',
    label: 'Judged over',
    unit: 'min',
    least: 0.01,
    most: 1440,
    hint: 'Empty: as the settings of the hub say.',
  },
]
