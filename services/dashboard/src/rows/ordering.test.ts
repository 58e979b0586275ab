import { expect, test } from 'vitest'

import { found, type Column, type Filters } from './ordering'
import { viewOf } from './rowview'

interface Row {
  name: string
  kind: string
  state: string
  value: number | null
}

const ROWS: Row[] = [
  { name: 'NGRID', kind: 'grid', state: 'late', value: 3 },
  { name: 'GEM', kind: 'grid', state: 'within', value: null },
  { name: 'HDS', kind: 'bulk', state: 'within', value: 10 },
  { name: 'CONDUIT', kind: 'grid', state: 'within', value: 3 },
]
const COLUMNS: Column<Row>[] = [
  { key: 'name', title: 'Name', value: (row) => row.name },
  { key: 'value', title: 'Value', isFigure: true, value: (row) => row.value },
]
const FILTERS: Filters<Row> = {
  name: (row) => row.name,
  text: (row) => `${row.name} ${row.kind}`,
  state: (row) => row.state,
  choices: { kind: (row, chosen) => row.kind === chosen },
}

function names(query: string): string[] {
  const view = viewOf(new URLSearchParams(query), { sort: 'name', choices: ['kind'] })
  return found(ROWS, view, FILTERS, COLUMNS).rows.map((row) => row.name)
}

test('rows are ordered by a column, equal ones by name, unknown values last either way', () => {
  expect(names('')).toEqual(['CONDUIT', 'GEM', 'HDS', 'NGRID'])
  expect(names('sort=-name')).toEqual(['NGRID', 'HDS', 'GEM', 'CONDUIT'])
  expect(names('sort=-value')).toEqual(['HDS', 'CONDUIT', 'NGRID', 'GEM'])
  expect(names('sort=value')).toEqual(['CONDUIT', 'NGRID', 'HDS', 'GEM'])
  expect(names('sort=nonsense')).toEqual(['CONDUIT', 'GEM', 'HDS', 'NGRID'])
})

test('every word of the text must be found, in any case', () => {
  expect(names('q=ng')).toEqual(['NGRID'])
  expect(names('q=grid+CON')).toEqual(['CONDUIT'])
  expect(names('q=nothing')).toEqual([])
})

test('choices and states filter, and counts ignore the states', () => {
  expect(names('kind=grid&state=within')).toEqual(['CONDUIT', 'GEM'])
  expect(names('state=late,within&kind=bulk')).toEqual(['HDS'])
  const view = viewOf(new URLSearchParams('kind=grid&state=late'), { sort: 'name', choices: ['kind'] })
  expect([...found(ROWS, view, FILTERS, COLUMNS).counts]).toEqual([
    ['late', 1],
    ['within', 2],
  ])
})
