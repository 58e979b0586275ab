/** The shapes of the reservation desk. */
import type { CircuitState, CircuitWhole } from '../api'

export type {
  Calendar,
  CalendarReservation,
  CalendarReservation as Reservation,
  CalendarResource,
  CalendarTest as BookedTest,
  Cap,
  CircuitCreation as Creation,
  CircuitEvent as Event,
  CircuitNew as Wanted,
  CircuitRates,
  CircuitState as State,
  PathOrder,
  Topology,
} from '../api'

/** A circuit; answers to requests come without its history. */
export type Circuit = Omit<CircuitWhole, 'events'> & Partial<Pick<CircuitWhole, 'events'>>

/** The problem document of a reservation that does not fit. */
export interface Conflict {
  circuits?: Holder[]
  tests?: Holder[]
  nearest?: { begin: string; end: string | null }
}

/** A circuit or a test with load in the way of a circuit. */
export interface Holder {
  circuit?: number
  test?: number
  /** Of a test. */
  kind?: string
  begin?: string
  end?: string | null
  rate_out_bps?: number
  rate_in_bps?: number
  description?: string
  requested_by?: string
}

/** Another window for a circuit, which is drawn and not asked for yet. */
export interface Proposal {
  circuit: number
  begin_ms: number
  end_ms: number
  /** Whether its begin changes, which it can't once the window has begun. */
  isMoved: boolean
}

/** The states in which a circuit has not begun, so that its window may move. */
export const UPCOMING: readonly CircuitState[] = ['held', 'admitted']
