/** Asks the hub for everything that a view shows. */
import type { Histogram, LatencyHistory, VolumeHistory } from '../api'
import { call, sentenceOf } from '../hub'
import { gaps, type Gap } from '../latencyview'
import type { Answered } from './curves'
import { keyOf, lineQuestion, stepOfRange, weekBefore, type Line, type LinesView } from './linesview'

export interface Answers {
  answered: Answered[]
  /** By feed; empty where it was refused. */
  arrived: Map<string, VolumeHistory>
  /** Why a line is missing. */
  problems: string[]
  /** The question that they answer, and the view that asked it. */
  asked: string
  view: LinesView
}

/** The part of the view that answers depend on: any other change of it needs no question. */
export function questionOfView(view: LinesView): string {
  return JSON.stringify([view.lines.map(keyOf), view.kind, view.minutes, view.until, view.weekBefore])
}

/** Asks again for all lines; those of the week before are kept, as they hardly change. */
export async function askLines(view: LinesView, known: Answers | null, signal: AbortSignal): Promise<Answers> {
  const asked = questionOfView(view)
  const kept = new Map((known?.asked === asked ? known.answered : []).map((one) => [keyOf(one.line), one.before]))
  const feeds = [...new Set(view.lines.map((line) => line.feed))]
  const [lines, arrived] = await Promise.all([
    Promise.allSettled(view.lines.map((line) => askLine(view, line, kept.get(keyOf(line)) ?? null, signal))),
    Promise.allSettled(feeds.map((feed) => askArrived(view, feed, signal))),
  ])
  signal.throwIfAborted()
  return {
    answered: lines.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
    arrived: new Map(arrived.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))),
    problems: [...new Set(lines.flatMap((one) => (one.status === 'rejected' ? [sentenceOf(one.reason)] : [])))],
    asked,
    view,
  }
}

/** A view with the lines and the range of these answers: while others are on their way, the old figures stay. */
export function viewAnswered(view: LinesView, { view: old }: Answers): LinesView {
  const { lines, kind, minutes, until, weekBefore: before } = old
  return { ...view, lines, kind, minutes, until, weekBefore: before }
}

/** How long to wait before the next question: many lines cost the hub no more than one. Null: the range has ended. */
export function againAfter_ms(view: LinesView): number | null {
  return view.until === null && view.minutes <= 1440 ? AGAIN_MS * Math.max(view.lines.length, 1) : null
}

/** The gaps of each line of a site, without the newest minutes, whose reports are still on their way. */
export function gapsOf(answers: Answers): { line: Line; gaps: Gap[] }[] {
  return answers.answered.flatMap(({ line, history }) => {
    const arrived = answers.arrived.get(line.feed)
    if (line.site === null || arrived === undefined) return []
    const newest_ms = Date.parse(history.to) - 60_000 * Math.max(2, history.step_minutes, arrived.step_minutes)
    const found = gaps(history, arrived).filter((gap) => Date.parse(gap.from) < newest_ms)
    return found.length === 0 ? [] : [{ line, gaps: found }]
  })
}

async function askLine(
  view: LinesView,
  line: Line,
  known: LatencyHistory | null,
  signal: AbortSignal,
): Promise<Answered> {
  const step = `&step=${stepOfRange(view.minutes)}`
  const before = () => `latency/history?${lineQuestion(view, line, weekBefore(view))}${step}`
  const [history, spread, earlier] = await Promise.all([
    call<LatencyHistory>('GET', `latency/history?${lineQuestion(view, line)}${step}`, undefined, signal),
    call<Histogram>('GET', `latency/histogram?${lineQuestion(view, line)}`, undefined, signal),
    view.weekBefore ? (known ?? call<LatencyHistory>('GET', before(), undefined, signal)) : null,
  ])
  return { line, history, spread, before: earlier }
}

async function askArrived(view: LinesView, feed: string, signal: AbortSignal): Promise<[string, VolumeHistory]> {
  const asked = new URLSearchParams({ feed, minutes: String(view.minutes) })
  if (view.until !== null) asked.set('until', view.until)
  return [feed, await call<VolumeHistory>('GET', `volume/history?${asked}`, undefined, signal)]
}

const AGAIN_MS = 15_000
