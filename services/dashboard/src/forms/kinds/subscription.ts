/** Subscriptions of a site to many feeds together. */
import type { Subscription, SubscriptionNew } from '../../api'
import { call } from '../../hub'
import { option } from '../command'
import { given, numberOf, Partly, textOf, type Field, type Form, type Option } from '../form'
import { feedOptions, type Scene } from '../scene'
import { refusedIn, subscribe } from '../subscribing'
import { moreTraffic } from '../traffic'

type SubscriptionValues = {
  feeds: string[]
  pattern: string
  not_pattern: string
  start: string
  max_age_s: string
  in_order: boolean
  hold_s: string
}

export async function addSubscriptions({ of: site, overview }: Scene): Promise<Form<SubscriptionValues>> {
  const taken = await call<Subscription[]>('GET', `sites/${encodeURIComponent(site)}/subscriptions`)
  const feeds: Field<SubscriptionValues> = {
    kind: 'many',
    name: 'feeds',
    label: 'Feeds',
    options: feedOptions(overview).map((one) => noted(one, taken)),
    isRequired: true,
  }
  return {
    title: `Subscriptions of ${site}`,
    verb: 'Add subscriptions',
    fields: [feeds, ...FIELDS],
    start: { feeds: [], pattern: '', not_pattern: '', start: '', max_age_s: '', in_order: false, hold_s: '' },
    commands: (values) => [commandOf(site, values)],
    send: (values) => send(site, values),
    preview: (values, signal) => moreTraffic({ ...patternsOf(values), feeds: values.feeds }, taken, signal),
  }
}

async function send(site: string, values: SubscriptionValues): Promise<{ notice: string }> {
  const done = await subscribe(site, values.feeds, furtherOf(values))
  if (done.refused.length === 0) return { notice: `${site} is subscribed to ${done.added.join(', ')}.` }
  throw new Partly(refusedIn(site, done), { ...values, feeds: done.refused.map((one) => one.feed) })
}

/** The properties that all the subscriptions share. */
export function furtherOf(values: SubscriptionValues): Omit<SubscriptionNew, 'feed'> {
  return given({
    ...patternsOf(values),
    start: textOf(values.start),
    max_age_s: numberOf(values.max_age_s),
    in_order: values.in_order ? true : null,
    hold_s: values.in_order ? numberOf(values.hold_s) : null,
  })
}

function patternsOf(values: SubscriptionValues): { pattern: string | null; not_pattern: string | null } {
  return { pattern: textOf(values.pattern), not_pattern: textOf(values.not_pattern) }
}

function commandOf(site: string, values: SubscriptionValues): string[] {
  return [
    ...['downburst', 'subscriptions', 'add', site],
    ...(values.feeds.length > 0 ? values.feeds : ['…']),
    ...option('--pattern', values.pattern),
    ...option('--not-pattern', values.not_pattern),
    ...option('--start', values.start),
    ...option('--max-age', values.max_age_s),
    ...(values.in_order ? ['--in-order', ...option('--hold', values.hold_s)] : []),
  ]
}

function noted(feed: Option, taken: readonly Subscription[]): Option {
  const its = taken.filter((one) => one.feed === feed.value)
  return its.length === 0 ? feed : { ...feed, note: `subscribed to ${its.map((one) => one.pattern).join(' and ')}` }
}

const FIELDS: Field<SubscriptionValues>[] = [
  {
    kind: 'text',
    name: 'pattern',
    label: 'Pattern',
    longest: 4096,
    placeholder: '^W[A-Z]US',
    hint: 'A regular expression on the id of a product. Empty: all products.',
  },
  { kind: 'text', name: 'not_pattern', label: 'Except', longest: 4096, hint: 'Products that match this are left out.' },
  {
    kind: 'text',
    name: 'start',
    isFurther: true,
    label: 'Start',
    longest: 64,
    placeholder: '6h',
    hint: 'Products stored since then are sent as well: how long ago, or a time in RFC 3339. Empty: now.',
  },
  {
    kind: 'number',
    name: 'max_age_s',
    isFurther: true,
    label: 'Oldest products',
    unit: 's',
    least: 0.001,
    most: 31_622_400,
    hint: 'Older ones are not sent. Empty: no limit.',
  },
  { kind: 'check', name: 'in_order', label: 'Shown in the order of their sequences', isFurther: true },
  {
    kind: 'number',
    name: 'hold_s',
    isFurther: true,
    label: 'Longest wait for a missing product',
    unit: 's',
    least: 0,
    most: 3600,
    hint: 'Empty: 2 s.',
    isShown: (values) => values.in_order,
  },
]
