/** Search over the names of feeds and sites, and over product ids by the page of products. */
import { addressOf } from '../route'

export interface Found {
  address: string
  title: string
  /** Beside the title. */
  note: string
}

export interface Group {
  title: string
  items: Found[]
}

export interface Searched {
  feeds: readonly { feed: string; class: string }[]
  sites: readonly { site: string; organisation: string }[]
  mayTrace: boolean
}

/** The results for a text, in groups that are not empty; none for an empty text. */
export function search(text: string, { feeds, sites, mayTrace }: Searched): Group[] {
  const wanted = text.trim().slice(0, LONGEST)
  if (wanted === '') return []
  const foundFeeds = best(wanted, feeds, (one) => [one.feed])
  const foundSites = best(wanted, sites, (one) => [one.site, one.organisation])
  const groups = [
    {
      title: 'Feeds',
      items: foundFeeds.map((one) => ({ address: addressOf('feeds', one.feed), title: one.feed, note: one.class })),
    },
    {
      title: 'Sites',
      items: foundSites.map((one) => ({
        address: addressOf('sites', one.site),
        title: one.site,
        note: one.organisation,
      })),
    },
    { title: 'Products', items: mayTrace ? productsFor(wanted) : [] },
  ]
  return groups.filter((group) => group.items.length > 0)
}

function productsFor(wanted: string): Found[] {
  return [
    { address: addressOf('products', wanted), title: wanted, note: 'trace this product ID' },
    {
      address: addressOf('products', null, { contains: wanted }),
      title: wanted,
      note: 'find products whose ID contains it',
    },
  ]
}

/** Names that begin with the text come before names that contain it. */
function best<T>(wanted: string, all: readonly T[], namesOf: (one: T) => string[]): T[] {
  const sought = wanted.toLowerCase()
  const rank = (one: T) => {
    const places = namesOf(one).map((name) => name.toLowerCase().indexOf(sought))
    return places[0] === 0 ? 0 : places.some((place) => place >= 0) ? 1 : 2
  }
  const ranked = all.map((one) => ({ one, rank: rank(one) })).filter((found) => found.rank < 2)
  return ranked
    .toSorted((first, second) => first.rank - second.rank)
    .slice(0, SHOWN)
    .map((found) => found.one)
}

const SHOWN = 6
// As long as the longest product id that a feed takes is likely to be.
const LONGEST = 400
