/** The sections of the rail, the pages of each, and the key that leads there after `g`. */
import { addressOf, pagesFor, type Link, type PageName, type Place } from '../route'

export type Section =
  'now' | 'alarms' | 'feeds' | 'sites' | 'latency' | 'products' | 'map' | 'network' | 'bridges' | 'admin'

/** One entry of the rail. */
export interface Entry {
  section: Section
  title: string
  href: string
  /** Whether the open page is one of its pages. */
  isOpen: boolean
  /** Its page is the open one. */
  isPage: boolean
}

interface Described {
  section: Section
  title: string
  /** The first that the user may see is the one that the entry leads to. */
  pages: PageName[]
  key: string
}

/** The entries of a user with these rights, for the open page. */
export function entriesFor(scopes: readonly string[], open: Place): Entry[] {
  const allowed = pagesFor(scopes).map((link) => link.page)
  return SECTIONS.flatMap(({ section, title, pages }) => {
    const first = pages.find((page) => allowed.includes(page))
    if (first === undefined) return []
    const isOpen = pages.some((page) => page === open)
    return [{ section, title, href: addressOf(first), isOpen, isPage: first === open }]
  })
}

/** The pages beside the open one in its section; none where the section has a single page for this user. */
export function siblingsOf(scopes: readonly string[], open: Place): Link[] {
  const pages = SECTIONS.find((one) => one.pages.some((page) => page === open))?.pages ?? []
  const found = pagesFor(scopes).filter((link) => pages.includes(link.page))
  return found.length > 1 ? found : []
}

/** The address that `g` and a letter lead to; null if no entry has the letter. */
export function addressByKey(entries: readonly Entry[], letter: string): string | null {
  const section = SECTIONS.find((one) => one.key === letter)?.section
  return entries.find((entry) => entry.section === section)?.href ?? null
}

/** The letter of a section, for the list of keys. */
export function keyOf(section: Section): string {
  return SECTIONS.find((one) => one.section === section)?.key ?? ''
}

const SECTIONS: Described[] = [
  { section: 'now', title: 'Now', pages: ['now', 'alarms'], key: 'n' },
  { section: 'feeds', title: 'Feeds', pages: ['feeds'], key: 'f' },
  { section: 'sites', title: 'Sites', pages: ['sites'], key: 's' },
  { section: 'latency', title: 'Latency', pages: ['latency', 'volume'], key: 'l' },
  { section: 'products', title: 'Products', pages: ['products'], key: 'p' },
  { section: 'map', title: 'Map', pages: ['map'], key: 'm' },
  { section: 'network', title: 'Network', pages: ['circuits', 'tree', 'relays'], key: 'w' },
  { section: 'bridges', title: 'Bridges', pages: ['bridges'], key: 'b' },
  { section: 'admin', title: 'Admin', pages: ['requests', 'users', 'audit'], key: 'a' },
]
