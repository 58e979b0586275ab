/** A new feed, and the properties of one that exists. */
import type { Feed, FeedChange, FeedNew } from '../../api'
import { call, change, look } from '../../hub'
import { option, orGap } from '../command'
import { changedNames, numberOf, textOf, type Field, type Form } from '../form'
import type { Scene } from '../scene'
import { FEED_NAME } from '../shapes'

/** As the API names them. */
type Properties = {
  class: string
  objective_ms: string
  retention_hours: string
  retention_bytes: string
  max_product_bytes: string
  duplicate_rule: string
  durability: string
  ldm_feed_type: string
  ldm_pattern: string
}
type NewValues = Properties & { feed: string }

export function addFeed(): Form<NewValues> {
  return {
    title: 'Add feed',
    verb: 'Add feed',
    fields: [NAME, ...(FIELDS as Field<NewValues>[])],
    start: { feed: '', ...DEFAULTS },
    commands: (values) => [['downburst', 'feeds', 'add', orGap(values.feed), ...optionsOf(wantedOf(values))]],
    send: async (values) => {
      const wanted: FeedNew = { feed: textOf(values.feed) ?? '', ...wantedOf(values) }
      const made = await call<Feed>('POST', 'feeds', wanted)
      return { notice: `Feed ${made.feed} exists. It needs a source and subscriptions.` }
    },
  }
}

export async function changeFeed({ of: feed }: Scene): Promise<Form<Properties>> {
  const path = `feeds/${encodeURIComponent(feed)}`
  const seen = await look<Feed>(path)
  const start = propertiesOf(seen.value)
  return {
    title: `Properties of ${feed}`,
    verb: 'Save properties',
    fields: FIELDS.map((field) => (field.kind === 'number' ? { ...field, isRequired: true, hint: '' } : field)),
    start,
    commands: (values) => [['downburst', 'feeds', 'set', feed, ...optionsOf(changeOf(start, values))]],
    send: async (values) => {
      const wanted = changeOf(start, values)
      if (Object.keys(wanted).length === 0) throw new Error('No property is different yet.')
      await change('PATCH', path, wanted, seen)
      return { notice: `The properties of ${feed} are saved.` }
    },
  }
}

/** The class, and all that is not the hub's default. */
function wantedOf(values: Properties): FeedChange {
  return { class: values.class as NonNullable<FeedChange['class']>, ...changeOf(DEFAULTS, values) }
}

/** The properties that differ. Without feed types a feed is none of LDM's; an emptied pattern is that of all. */
function changeOf(start: Properties, values: Properties): FeedChange {
  const names = changedNames(start, values).filter((name) => name in DEFAULTS) as (keyof Properties)[]
  const changed = Object.fromEntries(names.map((name) => [name, valueOf(name, values)]))
  if (changed['ldm_feed_type'] === null) changed['ldm_pattern'] = null
  else if (changed['ldm_pattern'] === null) changed['ldm_pattern'] = '.*'
  return changed
}

function valueOf(name: keyof Properties, values: Properties): string | number | null {
  return NUMBERS.includes(name) ? numberOf(values[name]) : textOf(values[name])
}

function optionsOf(wanted: FeedChange): string[] {
  if (wanted.ldm_feed_type === null) return [...optionsOf(withoutLdm(wanted)), '--no-ldm']
  return Object.entries(wanted).flatMap(([name, value]) => option(`--${name.replaceAll('_', '-')}`, value))
}

function withoutLdm({ ldm_feed_type: _type, ldm_pattern: _pattern, ...others }: FeedChange): FeedChange {
  return others
}

function propertiesOf(feed: Feed): Properties {
  const names = Object.keys(DEFAULTS) as (keyof Properties)[]
  return Object.fromEntries(names.map((name) => [name, String(feed[name as keyof Feed] ?? '')])) as Properties
}

/** Those of the hub; numbers are left to it. */
const DEFAULTS: Properties = {
  class: 'grid',
  objective_ms: '',
  retention_hours: '',
  retention_bytes: '',
  max_product_bytes: '',
  duplicate_rule: 'id-and-content',
  durability: 'process',
  ldm_feed_type: '',
  ldm_pattern: '',
}
const NUMBERS: (keyof Properties)[] = ['objective_ms', 'retention_hours', 'retention_bytes', 'max_product_bytes']
/** Of whole numbers that a browser holds exactly, the largest. */
const MOST_BYTES = Number.MAX_SAFE_INTEGER
const NAME: Field<NewValues> = {
  kind: 'text',
  name: 'feed',
  label: 'Name',
  isRequired: true,
  longest: 64,
  placeholder: 'NGRID',
  shape: FEED_NAME,
}
const FIELDS: Field<Properties>[] = [
  {
    kind: 'choice',
    name: 'class',
    label: 'Class',
    options: [
      { value: 'warning', label: 'warning', note: 'first priority' },
      { value: 'observation', label: 'observation' },
      { value: 'grid', label: 'grid' },
      { value: 'bulk', label: 'bulk', note: 'last priority' },
    ],
  },
  {
    kind: 'number',
    name: 'objective_ms',
    label: 'Latency objective, p99',
    unit: 'ms',
    least: 0.001,
    most: 86_400_000,
    hint: 'From the log of the hub to the log of a site. Empty: the default of the class.',
  },
  {
    kind: 'number',
    name: 'retention_hours',
    label: 'Kept at the hub',
    unit: 'hours',
    least: 0.001,
    most: 8784,
    hint: 'Empty: the default of the hub.',
  },
  {
    kind: 'number',
    name: 'retention_bytes',
    label: 'Space at the hub',
    unit: 'bytes',
    least: 1,
    most: MOST_BYTES,
    isWhole: true,
    isFurther: true,
    hint: 'Empty: the default of the hub.',
  },
  {
    kind: 'number',
    name: 'max_product_bytes',
    label: 'Largest product',
    unit: 'bytes',
    least: 1,
    most: MOST_BYTES,
    isWhole: true,
    isFurther: true,
    hint: 'Empty: the default of the hub.',
  },
  {
    kind: 'choice',
    name: 'duplicate_rule',
    label: 'Two products are duplicates by',
    isFurther: true,
    options: [
      { value: 'id-and-content', label: 'id and content' },
      { value: 'content-without-wmo-start', label: 'content without the WMO start' },
      { value: 'id', label: 'id' },
      { value: 'signature', label: 'signature of LDM' },
      { value: 'none', label: 'nothing', note: 'each is stored' },
    ],
  },
  {
    kind: 'choice',
    name: 'durability',
    label: 'An acknowledged product survives',
    isFurther: true,
    options: [
      { value: 'process', label: 'the end of the hub' },
      { value: 'power', label: 'a power cut', note: 'slower' },
    ],
  },
  {
    kind: 'text',
    name: 'ldm_feed_type',
    label: 'Feed types of LDM',
    longest: 500,
    placeholder: 'IDS|DDPLUS',
    isFurther: true,
    hint: 'Empty: LDMs neither bring nor get its products.',
  },
  {
    kind: 'text',
    name: 'ldm_pattern',
    label: 'Pattern on the identifiers of LDM',
    longest: 255,
    isFurther: true,
    hint: 'Empty: all products of these types.',
    isShown: (values) => textOf(values.ldm_feed_type) !== null,
  },
]
