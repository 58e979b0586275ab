import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

// @ts-expect-error the script has no types of its own
import { apiTypes, TYPES } from '../scripts/api-types.mjs'

test('types of the API are those of its description; if not: npm run types', () => {
  expect(readFileSync(TYPES, 'utf8')).toBe(apiTypes())
})
