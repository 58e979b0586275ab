/** Views with a name, kept in the browser. A view is the query of its address, so it can be passed on as a link. */

export interface SavedView {
  name: string
  query: string
}

/** Views that come with the page, and those of the user. */
export class SavedViews {
  readonly #key: string

  /** `list`: the page that they belong to. */
  constructor(
    list: string,
    /** Throws where the browser forbids a storage. */
    readonly storage: () => Pick<Storage, 'getItem' | 'setItem'>,
  ) {
    this.#key = `downburst.views.${list}`
  }

  all(): SavedView[] {
    try {
      const kept: unknown = JSON.parse(this.storage().getItem(this.#key) ?? '[]')
      return Array.isArray(kept) ? kept.filter(isView) : []
    } catch {
      return []
    }
  }

  /** Keeps a view, in place of one with the same name; false if the browser keeps nothing. */
  save(view: SavedView): boolean {
    return this.#keep([...this.all().filter((one) => one.name !== view.name), view])
  }

  remove(name: string): boolean {
    return this.#keep(this.all().filter((one) => one.name !== name))
  }

  #keep(views: SavedView[]): boolean {
    try {
      this.storage().setItem(this.#key, JSON.stringify(views))
      return true
    } catch {
      return false
    }
  }
}

/** The view on screen among them: the same filters and order, whatever row is open. */
export function viewWith(views: readonly SavedView[], query: string): SavedView | null {
  const wanted = withoutRow(query)
  return views.find((one) => withoutRow(one.query) === wanted) ?? null
}

/** The query of a view, which opens no row. */
export function withoutRow(query: string): string {
  const kept = new URLSearchParams(query)
  kept.delete('row')
  kept.sort()
  return kept.toString()
}

function isView(value: unknown): value is SavedView {
  if (typeof value !== 'object' || value === null) return false
  return 'name' in value && 'query' in value && typeof value.name === 'string' && typeof value.query === 'string'
}
