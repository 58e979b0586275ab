import { expect, test } from 'vitest'

import { SavedViews, viewWith, withoutRow } from './savedviews'

function storage(kept: Record<string, string> = {}) {
  const setItem = (key: string, value: string) => void (kept[key] = value)
  return () => ({ getItem: (key: string) => kept[key] ?? null, setItem })
}

test('views are kept by list and name', () => {
  const kept = storage()
  const views = new SavedViews('feeds', kept)
  expect(views.all()).toEqual([])
  expect(views.save({ name: 'late', query: 'state=late' })).toBe(true)
  views.save({ name: 'grids', query: 'class=grid' })
  views.save({ name: 'late', query: 'state=late&sort=-p99' })
  expect(new SavedViews('feeds', kept).all()).toEqual([
    { name: 'grids', query: 'class=grid' },
    { name: 'late', query: 'state=late&sort=-p99' },
  ])
  expect(new SavedViews('sites', kept).all()).toEqual([])
  views.remove('grids')
  expect(views.all().map((one) => one.name)).toEqual(['late'])
})

test('a storage that is broken, foreign or forbidden is no error', () => {
  expect(new SavedViews('feeds', storage({ 'downburst.views.feeds': '{' })).all()).toEqual([])
  expect(new SavedViews('feeds', storage({ 'downburst.views.feeds': '[1, {"name": 2}]' })).all()).toEqual([])
  const forbidden = () => {
    throw new Error('forbidden')
  }
  expect(new SavedViews('feeds', forbidden).save({ name: 'late', query: '' })).toBe(false)
  expect(new SavedViews('feeds', forbidden).all()).toEqual([])
})

test('the view on screen is known by its filters and order, not by the open row', () => {
  const views = [{ name: 'late', query: 'state=late&sort=-p99' }]
  expect(viewWith(views, 'sort=-p99&state=late&row=NGRID')?.name).toBe('late')
  expect(viewWith(views, 'state=late')).toBeNull()
  expect(withoutRow('row=NGRID')).toBe('')
})
