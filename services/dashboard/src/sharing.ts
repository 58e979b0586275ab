/** Keeps what did not change: a page renders a row again only if its object is another one. */

/** `arrived`, with every part that equals the one in its place in `shown` replaced by that one. */
export function shared<Value>(shown: unknown, arrived: Value): Value {
  if (Object.is(shown, arrived)) return arrived
  if (Array.isArray(arrived)) return sharedList(Array.isArray(shown) ? shown : [], arrived) as Value
  if (isRecord(arrived) && isRecord(shown)) return sharedRecord(shown, arrived) as Value
  return arrived
}

/** Rows are found by their name, so that one that is gone does not move all behind it. */
function sharedList(shown: unknown[], arrived: unknown[]): unknown[] {
  const byName = new Map<unknown, unknown>()
  for (const row of shown) if (isRecord(row)) byName.set(nameOf(row), row)
  const made = arrived.map((row, place) => {
    const name = isRecord(row) ? nameOf(row) : undefined
    return shared(name === undefined ? shown[place] : byName.get(name), row)
  })
  return made.length === shown.length && made.every((row, place) => Object.is(row, shown[place])) ? shown : made
}

function sharedRecord(shown: Record<string, unknown>, arrived: Record<string, unknown>): Record<string, unknown> {
  const names = Object.keys(arrived)
  const made: Record<string, unknown> = {}
  let same = names.length === Object.keys(shown).length
  for (const name of names) {
    made[name] = shared(shown[name], arrived[name])
    same &&= name in shown && Object.is(made[name], shown[name])
  }
  return same ? shown : made
}

function nameOf(row: Record<string, unknown>): unknown {
  const key = NAMES.find((name) => name in row)
  return key === undefined ? undefined : row[key]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// A site's row has feeds in it, and a circuit's row sites: the first of these that a row has is its name.
const NAMES = ['circuit', 'leg', 'upstream', 'site', 'feed', 'minute']
