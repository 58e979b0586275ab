import { createRawSnippet } from 'svelte'
import { render } from 'svelte/server'
import { expect, test } from 'vitest'

import KpiCard from './cards/KpiCard.svelte'
import Button from './controls/Button.svelte'
import Chip from './controls/Chip.svelte'
import { glyphOf } from './controls/transports'
import { barOf } from './marks/objective'
import ObjectiveBar from './marks/ObjectiveBar.svelte'
import StateMark from './marks/StateMark.svelte'
import { STATE_WORDS, stateOf, type MarkedState } from './marks/states'
import { choiceOf } from './scheme.svelte'

const text = (words: string) => createRawSnippet(() => ({ render: () => `<span>${words}</span>` }))

test('each state has a shape and words of its own', () => {
  const states = Object.keys(STATE_WORDS) as MarkedState[]
  const drawn = states.map((state) => render(StateMark, { props: { state, label: '' } }).body)
  const shapes = drawn.map((shape) => shape.replace(/class="[^"]*"/, ''))
  expect(new Set(shapes).size).toBe(states.length)
  expect(render(StateMark, { props: { state: 'never' } }).body).toContain('never enrolled</span>')
  const severities = ['critical', 'warning', 'information', 'of tomorrow']
  expect(severities.map(stateOf)).toEqual(['critical', 'warning', 'info', 'info'])
})

test('the bar of an objective has its tick at 100 % and ends at 170 %', () => {
  expect(barOf(0.5)).toEqual({ width_px: 16, tick_px: 33, isOver: false })
  expect(barOf(1)).toMatchObject({ width_px: 33, isOver: false })
  expect(barOf(4)).toMatchObject({ width_px: 56, isOver: true })
  expect([barOf(0.001).width_px, barOf(0).width_px, barOf(null).width_px, barOf(NaN).width_px]).toEqual([2, 0, 0, 0])
  expect(render(ObjectiveBar, { props: { share: 1.64 } }).body).toContain('164 % of the objective')
  expect(render(ObjectiveBar, { props: { share: null } }).body).toContain('not measured')
})

test('a transport has a glyph, whatever its name', () => {
  const named = ['unicast', 'multicast', 'static-circuit', 'circuit', 'multicast + relay', 'tunnel'].map(glyphOf)
  expect(named).toEqual(['unicast', 'multicast', 'static-circuit', 'static-circuit', 'relay', 'other'])
  expect(render(Chip, { props: { text: 'grid' } }).body).not.toContain('svg')
  expect(render(Chip, { props: { text: 'unicast', transport: 'unicast' } }).body).toContain('<path')
})

test('a button that is off says why, and a link that looks like a button is a link', () => {
  const off = render(Button, { props: { off: 'The hub does not answer.', children: text('Pin') } }).body
  expect(off).toContain('disabled')
  expect(off).toMatch(/visually-hidden.*The hub does not answer/)
  expect(render(Button, { props: { href: '#/sites', children: text('Open') } }).body).toMatch(/<a [^>]*href="#\/sites"/)
})

test('a card draws a curve only of what was stored', () => {
  const card = { label: 'In', figure: '111', unit: 'Mb/s', caption: '13 feeds' }
  expect(render(KpiCard, { props: card }).body).not.toContain('<svg')
  expect(render(KpiCard, { props: { ...card, history: [null, null] } }).body).not.toContain('<svg')
  expect(render(KpiCard, { props: { ...card, history: [1, null, 2] } }).body.match(/class="line/g)).toHaveLength(2)
})

test('a stored scheme that is none counts as the choice of the system', () => {
  const stored = ['light', 'dark', 'system', 'blue', null]
  expect(stored.map(choiceOf)).toEqual(['light', 'dark', 'system', 'system', 'system'])
})
