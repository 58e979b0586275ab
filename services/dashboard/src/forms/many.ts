/** A choice of many: filtered, toggled one by one or all that are listed. */
import type { Option } from './form'

export function matching(options: readonly Option[], filter: string): Option[] {
  const wanted = filter.trim().toLowerCase()
  return options.filter((one) => one.label.toLowerCase().includes(wanted))
}

/** The values with one added or taken away, in the order of the options. */
export function toggled(options: readonly Option[], chosen: readonly string[], value: string): string[] {
  const others = chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]
  return inOrder(options, others)
}

/** The values with all listed ones that can be chosen, or without them. */
export function withAll(listed: readonly Option[], chosen: readonly string[], isWanted: boolean): string[] {
  const these = listed.filter((one) => one.off === undefined).map((one) => one.value)
  const others = chosen.filter((one) => !these.includes(one))
  return isWanted ? [...others, ...these] : others
}

function inOrder(options: readonly Option[], values: readonly string[]): string[] {
  return options.map((one) => one.value).filter((one) => values.includes(one))
}
