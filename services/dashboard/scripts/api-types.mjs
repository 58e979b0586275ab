/** The types of the API's requests and answers, from its description: `npm run types` writes them to src/api.ts. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const DOCUMENT = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url))
export const TYPES = fileURLToPath(new URL('../src/api.ts', import.meta.url))

/** The text of src/api.ts; a schema that this can't write is an error, never `any`. */
export function apiTypes() {
  const { schemas } = JSON.parse(readFileSync(DOCUMENT, 'utf8')).components
  const types = Object.entries(schemas).map(([name, schema]) => `${said(schema, '')}${declared(name, schema)}`)
  return ['// Generated from docs/openapi.json by `npm run types`; a test compares. Not to be edited.', ...types].join('\n\n') + '\n'
}

function declared(name, schema) {
  return 'properties' in schema ? `export interface ${name} ${typeOf(schema)}` : `export type ${name} = ${typeOf(schema)}`
}

function typeOf(schema, indent = '') {
  if (schema.$ref) return schema.$ref.split('/').at(-1)
  if (schema.enum ?? ('const' in schema)) return (schema.enum ?? [schema.const]).map(literal).join(' | ')
  if (schema.anyOf) return [...new Set(schema.anyOf.map((one) => typeOf(one, indent)))].join(' | ')
  if (schema.properties) return members(schema, indent)
  if (schema.type === 'array') return listOf(typeOf(schema.items, indent))
  if (schema.type === 'object') return `Record<string, ${valueOf(schema.additionalProperties, indent)}>`
  const plain = PLAIN[schema.type]
  if (plain) return plain
  throw new Error(`no type for ${JSON.stringify(schema)}`)
}

function members({ properties, required = [], additionalProperties }, indent) {
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(
    ([name, schema]) =>
      `${said(schema, inner)}${inner}${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema, inner)}\n`,
  )
  const more = additionalProperties === true ? `${inner}[name: string]: unknown\n` : ''
  return `{\n${lines.join('')}${more}${indent}}`
}

function valueOf(schema, indent) {
  return schema === undefined || schema === true ? 'unknown' : typeOf(schema, indent)
}

const said = ({ description }, indent) =>
  description ? `${indent}/** ${description.replaceAll('*/', '* /').replaceAll('\n', `\n${indent}    `)} */\n` : ''
const listOf = (type) => (type.includes(' | ') ? `(${type})[]` : `${type}[]`)
const literal = (value) => (typeof value === 'string' ? `'${value}'` : String(value))
const PLAIN = { string: 'string', integer: 'number', number: 'number', boolean: 'boolean', null: 'null' }

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(TYPES, apiTypes())
