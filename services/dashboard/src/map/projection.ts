/** The world in a box of fixed size: Natural Earth's land, and places in the projection of the same name. */
import { geoNaturalEarth1, geoPath } from 'd3-geo'
import { feature } from 'topojson-client'
import type { GeometryCollection, Topology } from 'topojson-specification'
import land from 'world-atlas/land-110m.json'

import type { Placed } from './sites'

/** Units of the drawing. */
export const WORLD = { width: 960, height: 500 }

export interface Point {
  x: number
  y: number
}

const projection = geoNaturalEarth1().fitExtent(
  [
    [4, 4],
    [WORLD.width - 4, WORLD.height - 4],
  ],
  { type: 'Sphere' },
)
const path = geoPath(projection).digits(1)

/** The outline of the earth and its land, as SVG paths. */
export const SPHERE = path({ type: 'Sphere' }) ?? ''
export const LAND = landPath()

/** Where a place is drawn; the poles are lines in this projection, so every longitude has its own point there. */
export function pointOf({ latitude, longitude }: Placed): Point {
  const [x, y] = projection([longitude, latitude]) ?? [0, 0]
  return { x, y }
}

/** The great circle between two places; it leaves the map at one edge and returns at the other where it has to. */
export function greatCircle(from: Placed, to: Placed): string {
  const coordinates = [from, to].map(({ latitude, longitude }) => [longitude, latitude])
  return path({ type: 'LineString', coordinates }) ?? ''
}

/** Coordinates in words: `37.46 N 126.95 E`. */
export function coordinates({ latitude, longitude }: Placed): string {
  const north = `${Math.abs(latitude).toFixed(2)} ${latitude < 0 ? 'S' : 'N'}`
  return `${north} ${Math.abs(longitude).toFixed(2)} ${longitude < 0 ? 'W' : 'E'}`
}

function landPath(): string {
  const topology = land as unknown as Topology<{ land: GeometryCollection }>
  return path(feature(topology, topology.objects.land)) ?? ''
}
