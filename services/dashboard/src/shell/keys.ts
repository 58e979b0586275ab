/** Keys of the whole page: `/` searches, `g` and a letter open a section, `?` lists them. */

/** What a press asks for. */
export type Asked = { do: 'search' } | { do: 'list' } | { do: 'go'; letter: string } | null

export interface Press {
  key: string
  /** Control, Alt or the system's key is held: the press belongs to the browser. */
  isModified: boolean
  /** A field, or an open dialog or menu, has the focus. */
  isTaken: boolean
  at_ms: number
}

/** Remembers `g` for a moment. */
export class Keys {
  #wentAt_ms: number | null = null

  press({ key, isModified, isTaken, at_ms }: Press): Asked {
    const isSecond = this.#wentAt_ms !== null && at_ms - this.#wentAt_ms <= SEQUENCE_MS
    if (key === 'Shift') return null
    this.#wentAt_ms = null
    if (isModified || isTaken) return null
    if (isSecond && /^[a-z]$/.test(key)) return { do: 'go', letter: key }
    if (key === 'g') this.#wentAt_ms = at_ms
    return key === '/' ? { do: 'search' } : key === '?' ? { do: 'list' } : null
  }
}

/** A keyboard event as the page's keys see it. */
export function pressOf(event: KeyboardEvent): Press {
  const target = event.target instanceof Element ? event.target : null
  const isTaken = target?.closest(TAKEN) !== null && target !== null
  const isModified = event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented
  return { key: event.key, isModified, isTaken, at_ms: event.timeStamp }
}

const TAKEN =
  'input, textarea, select, [contenteditable], [role=dialog], [role=menu], [role=listbox], [role=slider], dialog'
const SEQUENCE_MS = 1500
