/** The forms: their names in addresses, the buttons that open them, and the rights that their requests need. */
import type { Scope } from '../api'

export type FormName =
  | 'feed.add'
  | 'feed.set'
  | 'feed.pin'
  | 'feed.objective'
  | 'feed.remove'
  | 'site.add'
  | 'site.set'
  | 'site.allow'
  | 'site.limit'
  | 'site.subscribe'
  | 'site.objective'
  | 'site.remove'
  | 'request.approve'
  | 'request.refuse'
  | 'upstream.add'
  | 'ldm.ask'
  | 'ldm.accept'
  | 'source.remove'
  | 'user.invite'
  | 'user.set'
  | 'user.remove'

export const FORMS: Record<FormName, { button: string; scope: Scope }> = {
  'feed.add': { button: 'Add feed', scope: 'operate' },
  'feed.set': { button: 'Change properties', scope: 'operate' },
  'feed.pin': { button: 'Pin transport', scope: 'operate' },
  'feed.objective': { button: 'Set objective', scope: 'operate' },
  'feed.remove': { button: 'Remove feed', scope: 'operate' },
  'site.add': { button: 'Add site', scope: 'operate' },
  'site.set': { button: 'Change properties', scope: 'operate' },
  'site.allow': { button: 'Permit feeds', scope: 'operate' },
  'site.limit': { button: 'Limit a feed', scope: 'operate' },
  'site.subscribe': { button: 'Add subscriptions', scope: 'operate' },
  'site.objective': { button: 'Set objective', scope: 'operate' },
  'site.remove': { button: 'Remove site', scope: 'operate' },
  'request.approve': { button: 'Approve request', scope: 'operate' },
  'request.refuse': { button: 'Refuse request', scope: 'operate' },
  'upstream.add': { button: 'Add upstream', scope: 'operate' },
  'ldm.ask': { button: 'Add LDM source', scope: 'operate' },
  'ldm.accept': { button: 'Let an LDM push', scope: 'operate' },
  'source.remove': { button: 'Remove source', scope: 'operate' },
  'user.invite': { button: 'Invite user', scope: 'admin' },
  'user.set': { button: 'Change rights', scope: 'admin' },
  'user.remove': { button: 'Remove user', scope: 'admin' },
}

/** The form that an address asks for, if the user may send its request. */
export function formIn(query: URLSearchParams, scopes: readonly Scope[]): FormName | null {
  const name = query.get('form')
  const isOne = name !== null && Object.hasOwn(FORMS, name)
  return isOne && scopes.includes(FORMS[name as FormName].scope) ? (name as FormName) : null
}

/** Texts of fields that an address fills in: `form.transport=multicast`. */
export function presetIn(query: URLSearchParams): Record<string, string> {
  const found = [...query].filter(([name]) => name.startsWith(PRESET))
  return Object.fromEntries(found.map(([name, value]) => [name.slice(PRESET.length), value]))
}

/** The address with a form, the thing it is for, and texts of its fields; everything else in the address stays. */
export function withForm(hash: string, form: FormName, of = '', preset: Record<string, string> = {}): string {
  const { path, query } = parted(withoutForm(hash))
  query.set('form', form)
  if (of !== '') query.set('of', of)
  for (const [name, value] of Object.entries(preset)) query.set(PRESET + name, value)
  return joined(path, query)
}

/** The address without a form. */
export function withoutForm(hash: string): string {
  const { path, query } = parted(hash)
  const own = [...query.keys()].filter((name) => name === 'form' || name === 'of' || name.startsWith(PRESET))
  for (const name of own) query.delete(name)
  return joined(path, query)
}

const PRESET = 'form.'

function parted(hash: string): { path: string; query: URLSearchParams } {
  const at = hash.indexOf('?')
  const path = at < 0 ? hash : hash.slice(0, at)
  return { path: path.replace(/^#?\/?/, '#/'), query: new URLSearchParams(at < 0 ? '' : hash.slice(at + 1)) }
}

function joined(path: string, query: URLSearchParams): string {
  const asked = query.toString()
  return asked === '' ? path : `${path}?${asked}`
}
