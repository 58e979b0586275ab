/** Where the page is: the part of the address behind `#`, which reproduces what is seen. */

export type PageName =
  | 'now'
  | 'alarms'
  | 'feeds'
  | 'sites'
  | 'circuits'
  | 'bridges'
  | 'latency'
  | 'products'
  | 'map'
  | 'tree'
  | 'relays'
  | 'volume'
  | 'requests'
  | 'users'
  | 'audit'

/** Where an address leads: to a page, or to none. */
export type Place = PageName | 'none'

export interface Route {
  page: Place
  /** The one feed, site or product that is looked at; of no page, what the address says. */
  name: string | null
  query: URLSearchParams
}

/** What an address asks for; without a word it is the first page. */
export function routeOf(hash: string): Route {
  const old = /^#latency=(.+)$/.exec(hash)
  if (old) return { page: 'latency', name: null, query: new URLSearchParams({ feed: decoded(old[1] ?? '') }) }
  const [path = '', query = ''] = split(hash)
  const [word = '', ...rest] = path.split('/')
  const name = rest.length > 0 && rest.join('/') !== '' ? decoded(rest.join('/')) : null
  if (word === 'trace') return { page: 'products', name, query: new URLSearchParams(query) }
  const page = word === '' && name === null ? 'now' : PAGES.find((one) => one === word)
  if (page === undefined) return { page: 'none', name: decoded(path), query: new URLSearchParams(query) }
  return { page, name, query: new URLSearchParams(query) }
}

/** The address of a page; what is empty is left out. */
export function addressOf(
  page: PageName,
  name: string | null = null,
  query: Record<string, string | null> = {},
): string {
  const given = Object.entries(query).filter((one): one is [string, string] => one[1] !== null && one[1] !== '')
  const asked = new URLSearchParams(given).toString()
  const word = page === 'now' ? '' : page
  return `#/${word}${name === null ? '' : `/${encodeURIComponent(name)}`}${asked === '' ? '' : `?${asked}`}`
}

/** What the page is called in the window's title. */
export function titleOf(route: Route): string {
  if (route.page === 'none') return 'Page not found'
  const word = TITLES[route.page]
  return route.name === null ? word : `${route.name} – ${word}`
}

export interface Link {
  page: PageName
  title: string
}

/** The pages that somebody with these rights has. */
export function pagesFor(scopes: readonly string[]): Link[] {
  return PAGES.filter((page) => scopes.includes(NEEDED[page])).map((page) => ({ page, title: TITLES[page] }))
}

/** A product's id is last in its address and may hold a question mark only in its encoded form. */
function split(hash: string): string[] {
  const text = hash.replace(/^#\/?/, '')
  const at = text.indexOf('?')
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const PAGES: PageName[] = [
  'now',
  'alarms',
  'feeds',
  'sites',
  'circuits',
  'bridges',
  'latency',
  'products',
  'map',
  'tree',
  'relays',
  'volume',
  'requests',
  'users',
  'audit',
]
const TITLES: Record<PageName, string> = {
  now: 'Now',
  alarms: 'Alarms',
  feeds: 'Feeds',
  sites: 'Sites',
  circuits: 'Circuits',
  bridges: 'Bridges',
  latency: 'Latency',
  products: 'Products',
  map: 'Map',
  tree: 'Distribution tree',
  relays: 'Relays',
  volume: 'Volume',
  requests: 'Requests',
  users: 'Users',
  audit: 'Audit',
}
const NEEDED: Record<PageName, string> = {
  now: 'read',
  alarms: 'read',
  feeds: 'read',
  sites: 'read',
  circuits: 'details',
  bridges: 'details',
  latency: 'latency',
  products: 'read',
  map: 'details',
  tree: 'latency',
  relays: 'details',
  volume: 'latency',
  requests: 'operate',
  users: 'admin',
  audit: 'admin',
}
