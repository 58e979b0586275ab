/** States that a mark shows by its shape as well as by its colour. */
export type MarkedState = 'critical' | 'warning' | 'info' | 'within' | 'catching-up' | 'never' | 'unknown'

/** The words for screen readers where the text beside the mark doesn't name the state. */
export const STATE_WORDS: Record<MarkedState, string> = {
  critical: 'critical',
  warning: 'warning',
  info: 'information',
  within: 'within the objectives',
  'catching-up': 'catching up',
  never: 'never enrolled',
  unknown: 'not known',
}

/** The marks of the severities that the hub names. */
export function stateOf(severity: string): MarkedState {
  return severity === 'critical' || severity === 'warning' ? severity : 'info'
}
