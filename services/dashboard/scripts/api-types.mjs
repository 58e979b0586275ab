/** The types of the API's answers and requests, from its description: `npm run types` writes them to src/api.ts. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

import openapiTS, { astToString } from 'openapi-typescript'

const DOCUMENT = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url))
export const TYPES = fileURLToPath(new URL('../src/api.ts', import.meta.url))

/** The text of src/api.ts. The page names its requests itself, so that paths are left out. */
export async function apiTypes() {
  const { openapi, info, components } = JSON.parse(readFileSync(DOCUMENT, 'utf8'))
  const shapes = { openapi, info, paths: {}, components: { schemas: withoutTitles(components.schemas) } }
  const options = { rootTypes: true, rootTypesNoSchemaPrefix: true, rootTypesKeepCasing: true, defaultNonNullable: false }
  const text = astToString(await openapiTS(shapes, options))
  return `// Generated from docs/openapi.json by \`npm run types\`; a test compares. Not to be edited.\n\n${text}`
}

/** Titles repeat the names. */
function withoutTitles(value) {
  if (Array.isArray(value)) return value.map(withoutTitles)
  if (value === null || typeof value !== 'object') return value
  const kept = Object.entries(value).filter(([name, one]) => name !== 'title' || typeof one !== 'string')
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutTitles(one)]))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(TYPES, await apiTypes())
