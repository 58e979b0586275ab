/** The command that does the same as a form, as a shell reads it. */
import { textOf, type Value } from './form'

/** One line of a shell; words that need it are quoted. */
export function lineOf(words: readonly string[]): string {
  return words.map(quoted).join(' ')
}

/** A word that is still missing stands as an ellipsis. */
export function orGap(value: Value | undefined): string {
  return textOf(value) ?? GAP
}

/** An option with its value, or nothing if the field is empty. */
export function option(name: string, value: Value | number | null | undefined): string[] {
  const text = typeof value === 'number' ? String(value) : textOf(value ?? undefined)
  return text === null ? [] : [name, text]
}

/** An option once for each value. */
export function each(name: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [name, value])
}

export const GAP = '…'

function quoted(word: string): string {
  return word === GAP || /^[\w.@:,/+=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
