import { expect, test } from 'vitest'

import { Refusal } from '../hub'
import { placedOf, problemsOf } from './checks'
import { each, lineOf, option, orGap } from './command'
import { begun, given, isChanged, numberOf, shownFields, type Field, type Form, type Values } from './form'
import { matching, toggled, withAll } from './many'
import { FORMS, formIn, presetIn, withForm, withoutForm } from './names'

const NAME: Field<Values> = { kind: 'text', name: 'feed', label: 'Name', isRequired: true, longest: 5 }
const HOURS: Field<Values> = { kind: 'number', name: 'hours', label: 'Kept', unit: 'hours', least: 0.001, most: 8784 }
const FEEDS: Field<Values> = { kind: 'many', name: 'feeds', label: 'Feeds', isRequired: true, options: [] }

test('what the hub would refuse is said at the field', () => {
  expect(problemsOf([NAME, HOURS, FEEDS], { feed: ' ', hours: '', feeds: [] })).toEqual({
    feed: 'Name is needed.',
    feeds: 'Feeds: choose at least one.',
  })
  expect(problemsOf([NAME, HOURS], { feed: 'NEXRAD', hours: 'two' })).toEqual({
    feed: 'Name has at most 5 characters.',
    hours: 'Kept is a number from 0.001 to 8,784 hours.',
  })
  const whole: Field<Values> = { kind: 'number', name: 'age', label: 'Age', least: 1, most: 9, isWhole: true }
  expect(problemsOf([whole], { age: '2.5' })).toEqual({ age: 'Age is a whole number from 1 to 9.' })
  const shaped: Field<Values> = { ...NAME, longest: 9, shape: { pattern: /^[a-z]+$/, sentence: 'Letters only.' } }
  expect(problemsOf([shaped], { feed: 'a1' })).toEqual({ feed: 'Letters only.' })
  expect(problemsOf([NAME, HOURS, FEEDS], { feed: 'IDS', hours: '2', feeds: ['a'] })).toEqual({})
})

test.each([
  ['hours', 'hours: Input should be less than 9; correct it, /docs has the format', 'hours'],
  ['place.hours', 'place.hours: Input should be less than 9', 'hours'],
  ['elsewhere', 'elsewhere: no', ''],
  [undefined, 'feed IDS exists already', ''],
])('a refusal that names %s stands there', (field, sentence, expected) => {
  const placed = placedOf(new Refusal(sentence, 400, { field }), [NAME, HOURS])
  expect(placed.field).toBe(expected)
  expect(placed.sentence).toBe(expected === '' ? sentence : 'Input should be less than 9.')
})

test('an error of another kind belongs to the whole form', () => {
  expect(placedOf(new TypeError('Failed to fetch'), [NAME])).toEqual({ field: '', sentence: 'Failed to fetch' })
})

test('a command is one that a shell reads', () => {
  const words = ['downburst', 'feeds', 'add', orGap(' '), ...option('--class', 'grid'), ...option('--x', '')]
  expect(lineOf(words)).toBe('downburst feeds add … --class grid')
  expect(lineOf(each('--allow', ['IDS|DDPLUS', 'NGRID']))).toBe("--allow 'IDS|DDPLUS' --allow NGRID")
  expect(lineOf(option('--place', "St John's"))).toBe("--place 'St John'\\''s'")
  expect(option('--rate', 0)).toEqual(['--rate', '0'])
  expect(option('--rate', null)).toEqual([])
})

test('values are those that were given', () => {
  expect(numberOf(' 2.5 ')).toBe(2.5)
  expect(numberOf('')).toBeNull()
  expect(numberOf('two')).toBeNull()
  expect(given({ one: null, two: 0, three: undefined, four: '' })).toEqual({ two: 0, four: '' })
  expect(isChanged({ one: '', two: ['a'] }, { one: '', two: ['a'] })).toBe(false)
  expect(isChanged({ one: '', two: ['a'] }, { one: '', two: ['a', 'b'] })).toBe(true)
})

test('fields show by the values of others', () => {
  const hidden: Field<Values> = { ...HOURS, isShown: (values) => values['feed'] === 'a' }
  const form = { fields: [NAME, hidden] } as unknown as Form
  expect(shownFields(form, { feed: 'b' })).toEqual([NAME])
  expect(shownFields(form, { feed: 'a' })).toEqual([NAME, hidden])
})

test('an address opens a form for those who may send it, and keeps the rest of the address', () => {
  const asked = new URLSearchParams('form=feed.add')
  expect(formIn(asked, ['read', 'operate'])).toBe('feed.add')
  expect(formIn(asked, ['read'])).toBeNull()
  expect(formIn(new URLSearchParams('form=toString'), ['operate', 'admin'])).toBeNull()
  expect(formIn(new URLSearchParams(), ['operate'])).toBeNull()
  expect(withForm('', 'feed.add')).toBe('#/?form=feed.add')
  expect(withForm('#/sites/unl.edu?feed=IDS', 'site.add', 'a b')).toBe('#/sites/unl.edu?feed=IDS&form=site.add&of=a+b')
  expect(withoutForm('#/sites/unl.edu?feed=IDS&form=site.add&of=a+b')).toBe('#/sites/unl.edu?feed=IDS')
  expect(withoutForm('#/feeds?form=feed.add')).toBe('#/feeds')
  expect(Object.values(FORMS).every((one) => ['operate', 'admin'].includes(one.scope))).toBe(true)
})

test('many options are filtered, toggled and chosen together', () => {
  const options = ['IDS', 'NGRID', 'NEXRAD2'].map((value) => ({ value, label: value }))
  const full = [...options, { value: 'CONDUIT', label: 'CONDUIT', off: 'taken already' }]
  expect(matching(options, ' n').map((one) => one.value)).toEqual(['NGRID', 'NEXRAD2'])
  expect(toggled(options, ['NGRID'], 'IDS')).toEqual(['IDS', 'NGRID'])
  expect(toggled(options, ['IDS', 'NGRID'], 'IDS')).toEqual(['NGRID'])
  expect(withAll(full, ['IDS'], true)).toEqual(['IDS', 'NGRID', 'NEXRAD2'])
  expect(withAll(matching(full, 'ids'), ['IDS', 'NGRID'], false)).toEqual(['NGRID'])
})

test('an address fills fields in, and only texts', () => {
  const address = withForm('#/feeds?form=feed.add&form.class=bulk', 'feed.pin', 'NGRID', { transport: 'multicast' })
  expect(address).toBe('#/feeds?form=feed.pin&of=NGRID&form.transport=multicast')
  const preset = presetIn(new URLSearchParams(address.split('?')[1]))
  expect(preset).toEqual({ transport: 'multicast' })
  const start = { transport: 'unicast', feeds: ['a'], isAll: false }
  expect(begun(start, { ...preset, feeds: 'b', isAll: 'true', toString: 'x' })).toEqual({
    ...start,
    transport: 'multicast',
  })
  expect(withoutForm(address)).toBe('#/feeds')
})
