import { expect, test } from 'vitest'
import { at, CALENDAR, CIRCUIT, RESERVATION, TOPOLOGY } from '../fixtures/desk'
import { drawingOf } from './layout'
import { pathOf, pathText } from './path'

const WINDOW = { begin_ms: Date.parse(at(1)), end_ms: Date.parse(at(2)) }

test('each hop has its direction, its tag and the rate that is free there', () => {
  const other = { ...RESERVATION, circuit: 9, rate_out_bps: 300e6, near_out_bps: 300e6 }
  const steps = pathOf(CIRCUIT, TOPOLOGY, { ...CALENDAR, reservations: [RESERVATION, other] }, WINDOW)
  expect(steps.map((step) => [step.name, step.note, step.tag, step.free_bps])).toEqual([
    ['hub-1', 'port hub-eth0 of the hub', 'VLAN 3021', 700e6],
    ['up', 'hub-eth0 → chic, campus', 'VLAN 3021', 700e6],
    ['long', 'chic → seat, kreonet', '3021 → 3123', 5e9 - 300e6],
    ['unl', 'seat → unl-eth1', 'VLAN 3123', 700e6],
    ['unl-eth1', 'port of unl.edu', 'VLAN 3123', 700e6],
  ])
  expect(steps.filter((step) => step.isChanged).map((step) => step.name)).toEqual(['long'])
})

test('hops and domains are counted, and a path of ends alone says so', () => {
  expect(pathText(CIRCUIT, TOPOLOGY)).toBe('3 hops, 2 domains')
  expect(pathText({ ...CIRCUIT, path: CIRCUIT.path.slice(0, 1) }, TOPOLOGY)).toBe('1 hop, 1 domain')
  expect(pathText({ ...CIRCUIT, path: [] }, TOPOLOGY)).toMatch(/^the ends alone/)
})

test('a link that is no longer declared is named without a place or a rate', () => {
  const lost = { ...CIRCUIT, path: [{ link: 'gone', forward: true, tag: null }] }
  const step = pathOf(lost, TOPOLOGY, CALENDAR, WINDOW)[1]
  expect([step?.note, step?.tag, step?.free_bps]).toEqual(['no longer in the topology', '', null])
})

test('the drawing goes from the hub to the sites, is always the same, and covers nothing', () => {
  const drawing = drawingOf(TOPOLOGY, CALENDAR)
  const columns = Object.fromEntries(drawing.spots.map((spot) => [spot.name, spot.x]))
  expect(Object.keys(columns).length).toBe(4)
  expect(columns['hub-eth0']).toBeLessThan(columns['chic'] ?? 0)
  expect(columns['chic']).toBeLessThan(columns['seat'] ?? 0)
  expect(columns['seat']).toBeLessThan(columns['unl-eth1'] ?? 0)
  expect(drawing.lines.map((line) => [line.name, line.from.name, line.to.name, line.resource])).toEqual([
    ['long', 'seat', 'chic', 0],
    ['unl', 'seat', 'unl-eth1', 1],
    ['up', 'hub-eth0', 'chic', 2],
  ])
  const turned = { ...TOPOLOGY, links: TOPOLOGY.links.toReversed(), switches: TOPOLOGY.switches.toReversed() }
  const places = (from: typeof drawing) => from.spots.map((spot) => [spot.name, spot.x, spot.y]).toSorted()
  expect(places(drawingOf(turned, CALENDAR))).toEqual(places(drawing))
  expect(new Set(drawing.spots.map((spot) => `${spot.x} ${spot.y}`)).size).toBe(drawing.spots.length)
  expect(drawing.spots.map((spot) => spot.kind).toSorted()).toEqual(['hub', 'site', 'switch', 'switch'])
})

test('a part of the network without a way to the hub is drawn as well', () => {
  const island = { name: 'isle', domain: 'x', ports: ['isle-1'], translates: false, node: null }
  const drawing = drawingOf({ ...TOPOLOGY, switches: [...TOPOLOGY.switches, island] }, CALENDAR)
  expect(drawing.spots.map((spot) => spot.name)).toContain('isle')
  expect(drawingOf({ ...TOPOLOGY, switches: [], links: [] }, CALENDAR).lines).toEqual([])
})
