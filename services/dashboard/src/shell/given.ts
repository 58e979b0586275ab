/** What pages give to the shell. */
import type { Link } from '../live'
import type { MarkedState } from '../ui/marks/states'

/** At the right end of an entry of the rail: a count, or a state with a count. */
export interface Note {
  text: string
  state?: MarkedState
}

/** At the bottom of the rail. */
export interface About {
  version: string
  uptime_s: number
}

/** The link to the hub, and the hub's clock. */
export interface Liveness {
  link: Link
  silent_s: number | null
  /** The hub's time of the figures on screen. */
  now: string
}

/** The user, and the ways in and out; without `signIn` the page has none. */
export interface Account {
  user: string | null
  role: string | null
  signIn?: () => void
  signOut?: () => void
}
