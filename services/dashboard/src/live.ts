/** Keeps an overview current: by server-sent events, by polling while those do not come, and says when neither does. */
import { parseOverview, type Overview } from './overview'

export type Link = 'connecting' | 'live' | 'polling' | 'stale'

/** What the page knows about its link to the hub. Times are in milliseconds of the caller's clock. */
export interface LinkState {
  started_ms: number
  lastEvent_ms: number | null
  lastAnswer_ms: number | null
}

/** Judges the link at a moment. */
export function link(state: LinkState, now_ms: number): Link {
  if (isFresh(state.lastEvent_ms, now_ms)) return 'live'
  if (isFresh(state.lastAnswer_ms, now_ms)) return 'polling'
  const nothingYet = state.lastEvent_ms === null && state.lastAnswer_ms === null
  return nothingYet && isFresh(state.started_ms, now_ms) ? 'connecting' : 'stale'
}

/** When the hub was last heard, by whichever way; `null` for never. */
export function lastHeard_ms(state: LinkState): number | null {
  const times = [state.lastEvent_ms, state.lastAnswer_ms].filter((time) => time !== null)
  return times.length > 0 ? Math.max(...times) : null
}

export interface Hearer {
  overview(overview: Overview): void
  link(link: Link, silent_s: number | null): void
  /** The hub does not know any more who asks. */
  signedOut?(): void
}

/** Starts following the hub; returns the way to stop. */
export function follow(hearer: Hearer): () => void {
  const state: LinkState = { started_ms: performance.now(), lastEvent_ms: null, lastAnswer_ms: null }
  let source = listen()
  let asking: AbortController | null = null

  function listen(): EventSource {
    const opened = new EventSource(EVENTS)
    opened.addEventListener('overview', (event) => {
      if (take(event.data)) state.lastEvent_ms = performance.now()
    })
    return opened
  }

  function take(text: string): boolean {
    try {
      hearer.overview(parseOverview(text))
      return true
    } catch (error) {
      console.warn(error)
      return false
    }
  }

  async function ask(): Promise<void> {
    if (asking) return
    asking = new AbortController()
    const limit = setTimeout(() => asking?.abort(), FRESH_MS)
    try {
      const response = await fetch(OVERVIEW, { signal: asking.signal, headers: { accept: 'application/json' } })
      if (response.status === 401) hearer.signedOut?.()
      if (response.ok && take(await response.text())) state.lastAnswer_ms = performance.now()
    } catch {
      // The hub is away: the link's state says so.
    } finally {
      clearTimeout(limit)
      asking = null
    }
  }

  function tick(): void {
    const now_ms = performance.now()
    const heard_ms = lastHeard_ms(state)
    const judged = link(state, now_ms)
    hearer.link(judged, heard_ms === null ? null : (now_ms - heard_ms) / 1000)
    if (judged === 'live' || isDue(now_ms)) return
    void ask()
    // A browser gives up for good on some answers, a proxy's error page for one.
    if (source.readyState === EventSource.CLOSED) source = listen()
  }

  /** The first event brings all that asking would, and of many sites that is too much to make and send twice. */
  function isDue(now_ms: number): boolean {
    const refused = source.readyState === EventSource.CLOSED
    return lastHeard_ms(state) === null && !refused && now_ms - state.started_ms < FIRST_EVENT_MS
  }

  const timer = setInterval(tick, TICK_MS)
  return () => {
    clearInterval(timer)
    asking?.abort()
    source.close()
  }
}

function isFresh(at_ms: number | null, now_ms: number): boolean {
  return at_ms !== null && now_ms - at_ms <= FRESH_MS
}

const EVENTS = './v1/events'
const OVERVIEW = './v1/overview'
const TICK_MS = 1000
// A proxy that holds events back shows the page that much later.
const FIRST_EVENT_MS = 2500
// Five seconds are five missed overviews: more than a slow network's hiccup.
const FRESH_MS = 5000
