/** The user of the page, and sign-in by password or by a link that works once. */
import type { Change, SignedOut, SignInWays, Who } from './api'
import { call } from './hub'

export type { Change, Role, SignInWays, Who } from './api'

/** What a one-time link in the address is for. */
export type LinkKind = 'welcome' | 'invitation' | 'sign-in'

export interface OneTimeLink {
  kind: LinkKind
  secret: string
}

/** The one-time link that an address carries, after its `#`, which no server ever sees. */
export function linkIn(hash: string): OneTimeLink | null {
  const found = /^#(welcome|invitation|sign-in)=(dbl_[\w-]+)$/.exec(hash)
  return found ? { kind: found[1] as LinkKind, secret: found[2] as string } : null
}

export function whoAmI(): Promise<Who> {
  return call<Who>('GET', 'session')
}

export async function signIn(user: string, password: string): Promise<void> {
  await call('POST', 'session', { user, password })
}

/** Ends the session here; the page of the provider on which the user signs out there as well, if there is one. */
export async function signOut(): Promise<string | null> {
  return (await call<SignedOut>('DELETE', 'session')).continue_at
}

export function waysToSignIn(): Promise<SignInWays> {
  return call<SignInWays>('GET', 'session/ways')
}

/** Where a sign-in at the hub's provider begins; afterwards the page opens again at the same place. */
export function providerAddress(hash: string): string {
  const place = refusalIn(hash) === null ? hash.replace(/^#/, '') : ''
  return `./v1/session/oidc?at=${encodeURIComponent(place)}`
}

/** The code of a refused sign-in at the provider, which the hub puts into the page's address. */
export function refusalIn(hash: string): string | null {
  return /^#sign-in-refused=([a-z-]{1,40})$/.exec(hash)?.[1] ?? null
}

/** Uses a one-time link: the first administrator gives name and password, an invited user a password. */
export async function useLink(link: OneTimeLink, user: string, password: string): Promise<void> {
  const wanted: Record<string, string> = { link: link.secret }
  if (link.kind === 'welcome') wanted['user'] = user
  if (link.kind !== 'sign-in') wanted['password'] = password
  await call('POST', 'session/link', wanted)
}

/** The differences that a change made, as values before and after; of added or removed things, the values set. */
export function differences(change: Change): { name: string; before: string; after: string }[] {
  const names = Object.keys({ ...change.before, ...change.after }).sort()
  return names
    .map((name) => ({ name, before: shown(change.before?.[name]), after: shown(change.after?.[name]) }))
    .filter((one) => one.before !== '' || one.after !== '')
}

function shown(value: unknown): string {
  if (value === undefined || value === null || value === '') return ''
  if (Array.isArray(value) && value.length === 0) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}
