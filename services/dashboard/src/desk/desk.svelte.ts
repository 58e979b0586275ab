/** What the reservation desk knows: the calendar of a frame and the topology, read again and again. */
import { call, Refusal, sentenceOf } from '../hub'
import type { Frame } from './scale'
import type { Calendar, Circuit, Conflict, Topology, Wanted } from './types'

/** The calendar of a frame; what was read stays until something newer comes. */
export class Desk {
  calendar = $state.raw<Calendar | null>(null)
  topology = $state.raw<Topology | null>(null)
  /** Why the last look failed; empty if it did not. */
  problem = $state('')
  /** The moment at which the calendar was read. */
  readAt = $state('')
  #asked = 0

  /** Reads the calendar of a frame; an answer that was overtaken is dropped. */
  async look(frame: Frame): Promise<void> {
    const asked = ++this.#asked
    try {
      const [calendar, topology] = await Promise.all([calendarOf(frame), call<Topology>('GET', 'topology')])
      if (asked !== this.#asked) return
      this.calendar = calendar
      this.topology = topology
      this.readAt = calendar.now
      this.problem = ''
    } catch (error) {
      if (asked === this.#asked) this.problem = sentenceOf(error)
    }
  }
}

/** What became of a question: an answer, or a sentence with the circuits in the way. */
export interface Tried {
  answer: Circuit | null
  sentence: string
  conflict: Conflict | null
}

/** Asks for something that the calendar may refuse. */
export async function tried(work: Promise<Circuit>): Promise<Tried> {
  try {
    return { answer: await work, sentence: '', conflict: null }
  } catch (error) {
    return { answer: null, sentence: sentenceOf(error), conflict: conflictOf(error) }
  }
}

/** The circuits in the way and the nearest window, if the refusal has them. */
export function conflictOf(error: unknown): Conflict | null {
  if (!(error instanceof Refusal) || error.status !== 409) return null
  const { problem } = error
  return problem !== null && typeof problem === 'object' ? (problem as Conflict) : null
}

export function calendarOf(frame: Frame): Promise<Calendar> {
  const query = new URLSearchParams({ begin: instant(frame.begin_ms), end: instant(frame.end_ms) })
  return call<Calendar>('GET', `calendar?${query}`)
}

/** Reserves, or asks what would become of it. */
export function reserve(wanted: Wanted, dryRun: boolean): Promise<Circuit> {
  return call<Circuit>('POST', `circuits?dry_run=${dryRun}`, wanted)
}

function instant(at_ms: number): string {
  return new Date(at_ms).toISOString()
}
