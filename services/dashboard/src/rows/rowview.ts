/** A view of a list of rows: filter, order and open row. The address holds it, so that the address reproduces it. */

export interface RowView {
  /** Rows must contain it; empty for all. */
  text: string
  /** The key of the column that orders the rows. */
  sort: string
  isDescending: boolean
  /** The states that are shown; empty for all. */
  states: string[]
  /** Values of further filters by their key; an empty text shows all. */
  choices: Record<string, string>
  /** The name of the row in the drawer. */
  row: string | null
}

/** What a list is like without anything in the address. */
export interface PlainView {
  sort: string
  /** The keys of its further filters. */
  choices: readonly string[]
}

export function viewOf(query: URLSearchParams, plain: PlainView): RowView {
  const sort = query.get('sort') || plain.sort
  return {
    text: query.get('q') ?? '',
    sort: sort.replace(/^-/, ''),
    isDescending: sort.startsWith('-'),
    states: (query.get('state') ?? '').split(',').filter((state) => state !== ''),
    choices: Object.fromEntries(plain.choices.map((key) => [key, query.get(key) ?? ''])),
    row: query.get('row') || null,
  }
}

/** The query of an address; what is as in the plain view is left out. */
export function queryOf(view: RowView, plain: PlainView): Record<string, string | null> {
  const sort = `${view.isDescending ? '-' : ''}${view.sort}`
  return {
    q: view.text,
    sort: sort === plain.sort ? null : sort,
    state: view.states.join(','),
    ...view.choices,
    row: view.row,
  }
}

/** The state of the filter after a press on a state's chip. */
export function toggled(states: readonly string[], state: string): string[] {
  return states.includes(state) ? states.filter((one) => one !== state) : [...states, state]
}

/** The order after a press on a column's header: that column, then the other way round. */
export function resorted(view: RowView, key: string, isFigure: boolean): Pick<RowView, 'sort' | 'isDescending'> {
  // The largest figures are looked for first, and names from A.
  return { sort: key, isDescending: view.sort === key ? !view.isDescending : isFigure }
}

/** True if the rows are not all shown. */
export function isFiltered(view: RowView): boolean {
  return view.text.trim() !== '' || view.states.length > 0 || Object.values(view.choices).some((value) => value !== '')
}

/** The same view without filters. */
export function unfiltered(view: RowView): RowView {
  const choices = Object.fromEntries(Object.keys(view.choices).map((key) => [key, '']))
  return { ...view, text: '', states: [], choices }
}
