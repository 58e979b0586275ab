/** Opens and closes forms by the address, and lets pages follow their results. */
import { getContext, setContext } from 'svelte'

import type { Scope } from '../api'
import { withForm, withoutForm, type FormName } from './names'

/** Grows with each form that was sent; an effect that reads it runs again. */
export const sent = $state({ count: 0 })

/** The address to which the page itself led; closing goes back there, not on. */
let led = ''

export function openForm(form: FormName, of = '', preset: Record<string, string> = {}): void {
  led = withForm(location.hash, form, of, preset)
  location.hash = led
}

/** Ends at the page below, or goes on to the next one. */
export function closeForm(next?: string): void {
  if (next !== undefined) location.replace(next)
  else if (location.hash === led) history.back()
  else location.replace(withoutForm(location.hash))
  led = ''
}

/** Tells the buttons below the rights of the user. */
export function provideScopes(scopes: () => readonly Scope[]): void {
  setContext(SCOPES, scopes)
}

/** The rights of the user; none where no page provides them. */
export function givenScopes(): () => readonly Scope[] {
  return getContext<(() => readonly Scope[]) | undefined>(SCOPES) ?? (() => [])
}

const SCOPES = Symbol('scopes')
