/** Checks of the fields before a request, and the field that a refusal of the hub belongs to. */
import { Refusal, sentenceOf } from '../hub'
import { textOf, type Field, type NumberField, type TextField, type Value, type Values } from './form'

/** The sentence at each field whose value the hub would refuse. */
export function problemsOf<V extends Values>(fields: Field<V>[], values: V): Record<string, string> {
  const found = fields.map((field) => [field.name, problemOf(field, values[field.name])] as const)
  return Object.fromEntries(found.filter(([, sentence]) => sentence !== ''))
}

export interface Placed {
  /** The name of a field; empty: the sentence belongs to the whole form. */
  field: string
  sentence: string
}

/** Where the sentence of an error belongs: the hub names the property that it refuses, as `place.latitude`. */
export function placedOf<V extends Values>(error: unknown, fields: Field<V>[]): Placed {
  const whole = sentenceOf(error)
  const named = error instanceof Refusal ? namedIn(error.problem) : ''
  const parts = named.split('.')
  const field = fields.find((one) => parts.includes(one.name))
  if (named === '' || field === undefined) return { field: '', sentence: whole }
  const bare = whole.replace(`${named}: `, '').replace(FORMAT_HINT, '')
  return { field: field.name, sentence: `${bare.charAt(0).toUpperCase()}${bare.slice(1)}.` }
}

/** Programs look the format up; the form has it in its hints. */
const FORMAT_HINT = /; correct it, \/docs has the format$/

function namedIn(problem: unknown): string {
  const found = problem !== null && typeof problem === 'object' && 'field' in problem ? problem.field : ''
  return typeof found === 'string' ? found : ''
}

function problemOf<V extends Values>(field: Field<V>, value: Value | undefined): string {
  if (field.kind === 'text') return textProblem(field, textOf(value))
  if (field.kind === 'number') return numberProblem(field, textOf(value))
  const isMissing = field.kind === 'many' && field.isRequired && Array.isArray(value) && value.length === 0
  return isMissing ? `${field.label}: choose at least one.` : ''
}

function textProblem<V extends Values>(field: TextField<V>, text: string | null): string {
  if (text === null) return field.isRequired ? `${field.label} is needed.` : ''
  if (text.length > field.longest) return `${field.label} has at most ${field.longest} characters.`
  return field.shape && !field.shape.pattern.test(text) ? field.shape.sentence : ''
}

function numberProblem<V extends Values>(field: NumberField<V>, text: string | null): string {
  if (text === null) return field.isRequired ? `${field.label} is needed.` : ''
  const number = Number(text)
  const isWithin = number >= field.least && number <= field.most
  if (isWithin && (!field.isWhole || Number.isInteger(number))) return ''
  const kind = field.isWhole ? 'a whole number' : 'a number'
  const unit = field.unit ? ` ${field.unit}` : ''
  return `${field.label} is ${kind} from ${plain(field.least)} to ${plain(field.most)}${unit}.`
}

function plain(number: number): string {
  return number.toLocaleString('en-US', { maximumFractionDigits: 6 })
}
