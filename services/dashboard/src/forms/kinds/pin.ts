/** The transport of a feed: pinned to one, or chosen by the hub again. */
import type { CurrentPlan } from '../../api'
import { latency, megabits } from '../../format'
import { call } from '../../hub'
import type { Candidate, Plan } from '../../overview'
import { option } from '../command'
import type { Form, Option, Preview } from '../form'
import type { Scene } from '../scene'

type PinValues = { transport: string }

export function pinTransport({ of: feed, overview, who }: Scene): Form<PinValues> {
  const plan = overview.feeds.find((one) => one.feed === feed)?.plan ?? null
  const path = `feeds/${encodeURIComponent(feed)}/pin`
  return {
    title: `Transport of ${feed}`,
    verb: 'Pin transport',
    fields: [{ kind: 'choice', name: 'transport', label: 'Transport', options: optionsOf(plan) }],
    start: { transport: plan?.transport ?? 'unicast' },
    commands: ({ transport }) => [commandOf(feed, transport, who.user)],
    send: async ({ transport }) => {
      if (transport === HUBS_CHOICE) {
        await call('DELETE', path)
        return { notice: `The hub chooses the transport of ${feed} again.` }
      }
      await call<CurrentPlan>('PUT', path, { transport })
      return { notice: `${feed} is pinned to ${transport}.` }
    },
    preview: ({ transport }) => Promise.resolve(plan === null ? null : changeOf(plan, transport)),
  }
}

/** The plan now, and with the transport, as the scheduler last compared them. */
export function changeOf(plan: Plan, transport: string): Preview {
  if (transport === HUBS_CHOICE) {
    return { sentence: 'The scheduler compares the transports again and keeps the best one.', columns: PLANS, rows: [] }
  }
  const [now, then] = [candidateOf(plan, plan.transport), candidateOf(plan, transport)]
  if (then === null) return { sentence: `The plan did not consider ${transport}.`, columns: PLANS, rows: [] }
  const row = (name: string, figure: (one: Candidate | null) => string): Preview['rows'][number] => ({
    name,
    cells: [figure(now), figure(then)],
  })
  return {
    sentence: then.reason === '' ? 'As the scheduler last compared them.' : `${then.transport}: ${then.reason}`,
    columns: PLANS,
    rows: [
      { name: 'Transport', cells: [plan.transport, transport] },
      row('Predicted p99', (one) => latency(one?.predicted_p99_ms)),
      row('Egress, Mb/s', (one) => megabits(one?.egress_bps)),
      row('Peak egress, Mb/s', (one) => megabits(one?.peak_egress_bps)),
    ],
  }
}

function optionsOf(plan: Plan | null): Option[] {
  const hubs = { value: HUBS_CHOICE, label: 'chosen by the hub' }
  return [...TRANSPORTS.map((one) => optionOf(plan, one)), ...(plan?.pinned ? [hubs] : [])]
}

function optionOf(plan: Plan | null, transport: string): Option {
  const bare = { value: transport, label: transport }
  const candidate = plan === null ? null : candidateOf(plan, transport)
  if (candidate === null) return bare
  if (!candidate.feasible) return { ...bare, off: candidate.reason }
  const figures = `${latency(candidate.predicted_p99_ms)}, ${megabits(candidate.egress_bps)} Mb/s`
  return { ...bare, note: `${figures}${transport === plan?.transport ? ', now' : ''}` }
}

function candidateOf(plan: Plan, transport: string): Candidate | null {
  return plan.candidates.find((one) => one.transport === transport) ?? null
}

function commandOf(feed: string, transport: string, user: string | null): string[] {
  if (transport === HUBS_CHOICE) return ['downburst', 'plans', 'unpin', feed]
  return ['downburst', 'plans', 'pin', feed, transport, ...option('--by', user)]
}

const HUBS_CHOICE = 'hub'
const TRANSPORTS = ['unicast', 'multicast', 'static-circuit', 'dynamic-circuit']
const PLANS: Preview['columns'] = ['Now', 'Then']
