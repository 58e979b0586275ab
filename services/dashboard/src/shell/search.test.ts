import { expect, test } from 'vitest'

import { search } from './search'

const HUB = {
  feeds: [
    { feed: 'FNGRID', class: 'bulk' },
    { feed: 'NGRID', class: 'grid' },
    { feed: 'IDS|DDPLUS', class: 'observation' },
  ],
  sites: [
    { site: 'psu.edu', organisation: 'Penn State' },
    { site: 'unl.edu', organisation: 'University of Nebraska' },
  ],
  mayTrace: false,
}

test('a feed that begins with the text comes before one that contains it', () => {
  expect(search('ngr', HUB)).toEqual([
    {
      title: 'Feeds',
      items: [
        { address: '#/feeds/NGRID', title: 'NGRID', note: 'grid' },
        { address: '#/feeds/FNGRID', title: 'FNGRID', note: 'bulk' },
      ],
    },
  ])
  expect(search('|dd', HUB)[0]?.items[0]?.address).toBe('#/feeds/IDS%7CDDPLUS')
})

test('a site is found by its name and by its organisation', () => {
  expect(search('penn', HUB)[0]?.items.map((one) => one.title)).toEqual(['psu.edu'])
  expect(search(' EDU ', HUB)[0]?.items).toHaveLength(2)
})

test('any text may be a product id, for users who may trace', () => {
  expect(search('nam/1.grib2', HUB)).toEqual([])
  const [products] = search('nam/1.grib2', { ...HUB, mayTrace: true })
  expect(products?.items.map((one) => one.address)).toEqual([
    '#/products/nam%2F1.grib2',
    '#/products?contains=nam%2F1.grib2',
  ])
})

test('an empty text finds nothing, and a list is short', () => {
  expect(search('  ', { ...HUB, mayTrace: true })).toEqual([])
  const sites = Array.from({ length: 500 }, (_, at) => ({ site: `site${at}.example`, organisation: '' }))
  expect(search('site', { ...HUB, sites })[0]?.items).toHaveLength(6)
})
