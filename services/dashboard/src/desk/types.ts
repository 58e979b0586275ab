/** The shapes of the reservation desk. */
import type * as api from '../api'

export type { Calendar, CalendarResource, CircuitRates, Topology } from '../api'

/** A state of a circuit's life. */
export type State = api.CircuitState | 'held' | 'expired' | 'waiting' | 'tearing-down'

/** Who creates the path at the begin: the hub, or an operator. */
export type Creation = 'automatic' | 'by-hand'

/** The members that a circuit has since its life has holds, paths by hand and overrides. */
interface Life {
  held_until?: string | null
  creation?: Creation
  overridden?: 'active' | 'down' | null
}

export interface Circuit extends Omit<api.CircuitWhole, 'state' | 'events'>, Life {
  state: State
  events?: Event[]
}

export interface Event extends Omit<api.CircuitEvent, 'state'> {
  state: State
}

export interface Reservation extends Omit<api.CalendarReservation, 'state'> {
  state: State
  held_until?: string | null
}

/** A request for a reservation. */
export interface Wanted extends api.CircuitNew {
  hold_s?: number
  creation?: Creation
  path_order?: api.PathOrder
  include?: string[]
  exclude?: string[]
}

/** The problem document of a reservation that does not fit. */
export interface Conflict {
  circuits?: Holder[]
  nearest?: { begin: string; end: string | null }
}

/** A circuit in the way of another. */
export interface Holder {
  circuit: number
  begin?: string
  end?: string | null
  rate_out_bps?: number
  rate_in_bps?: number
  description?: string
  requested_by?: string
}
