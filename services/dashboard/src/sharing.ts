/** Keeps what did not change: a page renders a row again only if its object is another one. */

/** `arrived`, with every part that equals the one in its place in `shown` replaced by that one. */
export function shared<Value>(shown: unknown, arrived: Value): Value {
  if (Object.is(shown, arrived)) return arrived
  if (Array.isArray(arrived)) return sharedList(Array.isArray(shown) ? shown : [], arrived) as Value
  if (isRecord(arrived) && isRecord(shown)) return sharedRecord(shown, arrived) as Value
  return arrived
}

/** Rows are found by their name, so that one that is gone does not move all behind it; others by their place. */
function sharedList(shown: unknown[], arrived: unknown[]): unknown[] {
  const byName = new Map<unknown, unknown>()
  for (const row of shown) {
    const name = nameOf(row)
    // Several incidents may be about one site.
    if (name !== null) byName.set(name, byName.has(name) ? SEVERAL : row)
  }
  const made = arrived.map((row, place) => {
    const name = nameOf(row)
    const named = name === null ? SEVERAL : byName.get(name)
    return shared(named === SEVERAL ? shown[place] : named, row)
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

/** Null: the row has none. */
function nameOf(row: unknown): unknown {
  if (!isRecord(row)) return null
  const key = NAMES.find((name) => name in row)
  return key === undefined ? null : row[key]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const SEVERAL = Symbol('several rows of one name')
// A site's row has feeds in it, and a circuit's row sites: the first of these that a row has is its name.
const NAMES = ['circuit', 'leg', 'upstream', 'site', 'feed', 'minute']
