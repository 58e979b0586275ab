/** A form as a description: its fields, the command that does the same, and the request. One drawer draws them all. */

/** Numbers are kept as they are typed, so that a slip can be seen and mended. */
export type Value = string | boolean | string[]
export type Values = Record<string, Value>

export interface Option {
  value: string
  label: string
  /** Beside the label: a figure that helps to choose. */
  note?: string
  /** Why it cannot be chosen. */
  off?: string
}

interface Common<V extends Values> {
  /** As the request names it; the hub names the same in its refusals. */
  name: keyof V & string
  label: string
  hint?: string
  /** Seldom changed: folded below the others. */
  isFurther?: boolean
  /** Left out: always. A field that is not shown is neither checked nor sent. */
  isShown?(values: V): boolean
}

export interface TextField<V extends Values> extends Common<V> {
  kind: 'text'
  isRequired?: boolean
  longest: number
  placeholder?: string
  /** The form that the text has, and the sentence for any other text. */
  shape?: { pattern: RegExp; sentence: string }
  /** A secret is not shown while it is typed. */
  isSecret?: boolean
}

export interface NumberField<V extends Values> extends Common<V> {
  kind: 'number'
  isRequired?: boolean
  unit?: string
  least: number
  most: number
  isWhole?: boolean
  placeholder?: string
}

/** One of a few. */
export interface ChoiceField<V extends Values> extends Common<V> {
  kind: 'choice'
  options: Option[]
}

/** Any number of many. */
export interface ManyField<V extends Values> extends Common<V> {
  kind: 'many'
  options: Option[]
  isRequired?: boolean
}

export interface CheckField<V extends Values> extends Common<V> {
  kind: 'check'
}

export type Field<V extends Values> = TextField<V> | NumberField<V> | ChoiceField<V> | ManyField<V> | CheckField<V>

/** The change of the delivery that a form would make. */
export interface Preview {
  /** One sentence; without rows it is all there is to say. */
  sentence: string
  columns: [string, string]
  rows: { name: string; cells: [string, string] }[]
}

/** Made by a form, and shown once: a token, a link. */
export interface Shown {
  title: string
  text: string
}

export interface Outcome {
  notice: string
  shown?: Shown[]
  /** The address that the page goes on to, where its own has ended. */
  next?: string
}

export interface Form<V extends Values = Values> {
  title: string
  /** The main button. */
  verb: string
  /** It takes something away: the main button warns. */
  isDangerous?: boolean
  /** Facts to decide by, before the fields. */
  facts?: { name: string; value: string }[]
  fields: Field<V>[]
  start: V
  /** The words of each command, the first one `downburst`. */
  commands(values: V): string[][]
  send(values: V): Promise<Outcome>
  /** Only where delivery changes. */
  preview?(values: V, signal?: AbortSignal): Promise<Preview | null>
}

/** A part was done: the sentence says which, and the form keeps the rest. */
export class Partly extends Error {
  constructor(
    sentence: string,
    readonly rest: Values,
  ) {
    super(sentence)
  }
}

/** The fields that these values show. */
export function shownFields<V extends Values>(form: Form<V>, values: V): Field<V>[] {
  return form.fields.filter((field) => field.isShown?.(values) ?? true)
}

/** The values at the opening of a form, with the texts that its address fills in. */
export function begun(start: Values, preset: Record<string, string>): Values {
  const texts = Object.entries(preset).filter(([name]) => typeof start[name] === 'string')
  return { ...structuredClone(start), ...Object.fromEntries(texts) }
}

/** Whether something was typed or chosen since the form opened. */
export function isChanged(start: Values, values: Values): boolean {
  return changedNames(start, values).length > 0
}

/** The names of the values that are different. */
export function changedNames(start: Values, values: Values): string[] {
  return Object.keys(start).filter((name) => String(start[name]) !== String(values[name]))
}

/** The text of a field, or null if it is empty. */
export function textOf(value: Value | undefined): string | null {
  const text = typeof value === 'string' ? value.trim() : ''
  return text === '' ? null : text
}

/** The number of a field, or null if it is empty or none. */
export function numberOf(value: Value | undefined): number | null {
  const text = textOf(value)
  const number = Number(text)
  return text === null || !Number.isFinite(number) ? null : number
}

/** The properties of a request that have a value. */
export function given<T extends Record<string, unknown>>(properties: T): Given<T> {
  const kept = Object.entries(properties).filter(([, value]) => value !== null && value !== undefined)
  return Object.fromEntries(kept) as Given<T>
}

type Given<T> = Partial<{ [K in keyof T]: NonNullable<T[K]> }>
