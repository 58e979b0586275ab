/** Requests for access, and a site's view of itself. */
import type { Credential, RequestMade, RequestStateShown, SiteWhole } from './api'
import { call } from './hub'

export type {
  AccessRequest,
  Credential,
  HostReading,
  PathLatency as LatencyRow,
  PatternTested as PatternTest,
  RequestMade as Asked,
  RequestStateShown,
  Resend as Sending,
  SiteLimit as Limit,
  SiteWhole as OwnSite,
  Subscription,
} from './api'

/** The request in an address: `#request` for the form, `#request=dbq_…` for the state of a request. */
export function requestIn(hash: string): { secret: string | null } | null {
  if (hash === '#request') return { secret: null }
  const found = /^#request=(dbq_[\w-]+)$/.exec(hash)
  return found ? { secret: found[1] as string } : null
}

/** The names in a field, whatever people put between them. */
export function names(text: string): string[] {
  return text.split(/[\s,;]+/).filter((one) => one !== '')
}

/** What was filled in: an empty field asks for nothing. */
export function filled(fields: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value.trim() !== ''))
}

/** Whether a credential may still be shown. */
export const isKept = (credential: Credential) => !credential.revoked_at && !credential.replaced_at

/** The state of a credential as text. */
export function standing(credential: Credential, now: Date): string {
  if (credential.revoked_at) return `revoked ${minute(credential.revoked_at)}`
  if (credential.replaced_at) return `replaced ${minute(credential.replaced_at)}`
  if (!credential.expires_at) return 'does not expire'
  const days = Math.floor((Date.parse(credential.expires_at) - now.getTime()) / 86_400_000)
  if (days < 0) return `expired ${minute(credential.expires_at)}; its receiver needs a new enrolment token`
  const renewal = credential.asked_at
    ? 'replaced as soon as its receiver is connected'
    : `replaced automatically from ${(credential.renews_at ?? '').slice(0, 10)}`
  return `expires ${minute(credential.expires_at)}, in ${days} days; ${renewal}`
}

const minute = (instant: string) => instant.slice(0, 16).replace('T', ' ')

/** The command that starts a receiver, to be copied. */
export function receiveCommand(site: SiteWhole, page: { hostname: string }): string {
  const announced = site.sites_address[0] ?? `${page.hostname}:7370`
  // A wildcard or loopback address that the hub listens on can't be reached from a site.
  const address = announced.replace(/^(0\.0\.0\.0|\[::\]|127\.0\.0\.1)(?=:)/, page.hostname)
  return `downburst-node receive --hub ${address} --token-file ${site.site}.token --dir /data/downburst`
}

export const ask = (wanted: Record<string, unknown>) => call<RequestMade>('POST', 'access-requests', wanted)
export const stateOf = (secret: string) => call<RequestStateShown>('POST', 'access-requests/state', { secret })
