import { afterEach, expect, test, vi } from 'vitest'

import { change, look } from './hub'

afterEach(() => vi.unstubAllGlobals())

test('a change names what was seen', async () => {
  const asked = vi.fn((_path: string, _request: RequestInit) =>
    Promise.resolve(new Response('{"site":"unl.edu"}', { headers: { etag: '"abc"' } })),
  )
  vi.stubGlobal('fetch', asked)
  const seen = await look<{ site: string }>('sites/unl.edu')
  expect(seen).toEqual({ value: { site: 'unl.edu' }, tag: '"abc"' })
  await change('PATCH', 'sites/unl.edu', { allow: [] }, seen)
  expect(asked.mock.calls[1]?.[1]).toMatchObject({
    method: 'PATCH',
    headers: { 'if-match': '"abc"' },
    body: '{"allow":[]}',
  })
})

test('a change of what somebody else changed is refused in the words of the hub', async () => {
  const refused = new Response('{"detail":"site unl.edu was changed meanwhile"}', { status: 412 })
  vi.stubGlobal('fetch', () => Promise.resolve(refused))
  await expect(change('PATCH', 'sites/unl.edu', {}, { value: null, tag: '"old"' })).rejects.toThrow('changed meanwhile')
})
