import { expect, test } from 'vitest'

import { clustersOf, clusterWords, radiusFor, sharesOf, worstOf, type Located } from './clusters'
import { moveOf } from './gestures'
import { commandOf, placeOf, problemOf } from './place'
import { coordinates, greatCircle, LAND, pointOf, WORLD } from './projection'
import type { MapState, PlacedSite } from './sites'
import { fitted, isInView, MOST_K, panned, shownAt, WHOLE, zoomed } from './viewport'

function at(latitude: number, longitude: number, state: MapState = 'within', site = 'a'): Located {
  const place = { latitude, longitude }
  return { site: { site, state, place } as PlacedSite, point: pointOf(place) }
}

test('the whole world is in the box: poles, both edges, the middle', () => {
  const corners = [
    [90, 0],
    [-90, 0],
    [0, 180],
    [0, -180],
    [90, 180],
    [-90, -180],
  ] as const
  for (const [latitude, longitude] of corners) {
    expect(isInView(WHOLE, pointOf({ latitude, longitude }))).toBe(true)
  }
  const middle = pointOf({ latitude: 0, longitude: 0 })
  expect(middle.x).toBeCloseTo(WORLD.width / 2)
  expect(middle.y).toBeCloseTo(WORLD.height / 2)
  expect(LAND.length).toBeGreaterThan(10_000)
})

test('a line over the antimeridian leaves at one edge and returns at the other', () => {
  const parts = (path: string) => path.split('M').length - 1
  expect(parts(greatCircle({ latitude: 37, longitude: 127 }, { latitude: 40, longitude: -105 }))).toBe(2)
  expect(parts(greatCircle({ latitude: 50, longitude: 8 }, { latitude: 40, longitude: -105 }))).toBe(1)
  expect(coordinates({ latitude: 37.456, longitude: -126.95 })).toBe('37.46 N 126.95 W')
  expect(coordinates({ latitude: -37, longitude: 0 })).toBe('37.00 S 0.00 E')
})

test('neighbours on the earth at both edges of the map stay apart, as they are drawn apart', () => {
  const [fiji, samoa] = [at(-17, 179.9), at(-17, -179.9)]
  expect(clustersOf([fiji, samoa], 40)).toHaveLength(2)
})

test('sites at one place share a mark that enlarging does not part', () => {
  const many = Array.from({ length: 300 }, (_, number) => at(40, -97, number === 7 ? 'down' : 'within', `${number}`))
  const [cluster, ...others] = clustersOf(many, radiusFor(many.length, 1, MOST_K))
  expect(others).toEqual([])
  expect(cluster?.members).toHaveLength(300)
  expect(fitted(many.map((one) => one.point)).k).toBe(MOST_K)
})

test('a cluster has the shares and the worst state of its sites', () => {
  const [cluster] = clustersOf(
    [at(40, -97, 'within'), at(40, -97, 'late'), at(40, -97, 'unmeasured'), at(40, -97, 'down')],
    1,
  )
  if (cluster === undefined) throw new Error('no cluster')
  expect(sharesOf(cluster)).toEqual({ bad: 0.5, within: 0.25 })
  expect(worstOf(cluster)).toBe('down')
  expect(clusterWords(cluster)).toBe('4 sites, 1 down, 1 late')
})

test('up to 50 sites are drawn one by one unless they cover each other; each site is in one cluster', () => {
  expect(radiusFor(50, 1, 1)).toBeLessThan(radiusFor(51, 1, 1))
  expect(radiusFor(51, 1, 4)).toBe(radiusFor(51, 1, 1) / 4)
  expect(Number.isFinite(radiusFor(51, 0, 1))).toBe(true)
  const spread = Array.from({ length: 400 }, (_, number) => at((number % 20) * 8 - 76, number * 0.9 - 180))
  const clusters = clustersOf(spread, radiusFor(spread.length, 1, 1))
  expect(clusters.length).toBeLessThan(200)
  expect(clusters.flatMap((one) => one.members)).toHaveLength(400)
  expect(clustersOf([], 40)).toEqual([])
})

test('zooming keeps the point under the pointer, and the box never shows more than the world', () => {
  const pointer = { x: 700, y: 300 }
  const near = zoomed(WHOLE, 4, pointer)
  expect(shownAt(near, pointer)).toEqual(pointer)
  expect(zoomed(near, 0.01)).toEqual(WHOLE)
  expect(zoomed(WHOLE, 1e9).k).toBe(MOST_K)
  expect(panned(WHOLE, { x: 50, y: -50 })).toEqual(WHOLE)
  expect(panned(near, { x: 1e6, y: -1e6 })).toEqual({ k: 4, x: 0, y: -WORLD.height * 3 })
})

test('fitted points are all in view', () => {
  const points = [at(60, 10), at(35, 25), at(40, -10)].map((one) => one.point)
  const view = fitted(points)
  expect(view.k).toBeGreaterThan(3)
  expect(points.every((point) => isInView(view, point))).toBe(true)
  expect(fitted([])).toEqual(WHOLE)
})

test('keys zoom and move the map, others do nothing', () => {
  expect(moveOf('+')).toEqual({ factor: 2 })
  expect(moveOf('-')).toEqual({ factor: 0.5 })
  expect(moveOf('ArrowRight')).toEqual({ by: { x: -80, y: 0 } })
  expect(['Tab', 'a', 'constructor'].map(moveOf)).toEqual([null, null, null])
})

test('a place is refused with the bound that it breaks, and the command sets the same', () => {
  const place = { text: " O'Brien Hall ", latitude: -40.5, longitude: 180 }
  expect(problemOf(place)).toBe('')
  expect(placeOf(place)).toEqual({ text: "O'Brien Hall", latitude: -40.5, longitude: 180 })
  expect(problemOf({ ...place, latitude: null })).toContain('from −90 to 90')
  expect(problemOf({ ...place, latitude: 90.01 })).toContain('latitude')
  expect(problemOf({ ...place, longitude: -181 })).toContain('from −180 to 180')
  expect(problemOf({ ...place, longitude: Number.NaN })).toContain('longitude')
  expect(commandOf('unl.edu', place)).toBe(
    "downburst sites set unl.edu --latitude -40.5 --longitude 180 --place 'O'\\''Brien Hall'",
  )
  expect(commandOf('a b', { text: '', latitude: null, longitude: 1 })).toBe(
    "downburst sites set 'a b' --latitude … --longitude 1",
  )
})
