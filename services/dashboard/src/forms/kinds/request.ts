/** The answers to a request for access: approved with feeds, subscriptions and a token, or refused with a reason. */
import type { AccessRequest, TokenMade } from '../../api'
import { call } from '../../hub'
import { receiveCommand, type OwnSite } from '../../selfservice'
import { each, option, orGap } from '../command'
import { given, Partly, textOf, type Form, type Option, type Outcome, type Shown } from '../form'
import { feedOptions, type Scene } from '../scene'
import { refusedIn, subscribe } from '../subscribing'
import { moreTraffic } from '../traffic'

type ApprovalValues = { allow: string[]; isSubscribed: boolean; hasToken: boolean; answer: string }
type RefusalValues = { answer: string }

export async function approveRequest(scene: Scene): Promise<Form<ApprovalValues>> {
  const request = await requestOf(scene.of)
  const options = optionsFor(request, scene)
  const approval = new Approval(request)
  return {
    title: `Approve ${request.site}`,
    verb: 'Approve request',
    facts: factsOf(request),
    fields: [
      { kind: 'many', name: 'allow', label: 'Permitted feeds', options, isRequired: true },
      { kind: 'check', name: 'isSubscribed', label: 'Subscribe it to these feeds' },
      { kind: 'check', name: 'hasToken', label: 'Create an enrolment token' },
      { kind: 'text', name: 'answer', label: 'Message to the requester', longest: 500 },
    ],
    start: { allow: requested(request, options), isSubscribed: true, hasToken: true, answer: '' },
    commands: (values) => commandsOf(request, values),
    send: (values) => approval.send(values),
    preview: async (values, signal) =>
      values.isSubscribed ? moreTraffic({ feeds: values.allow, pattern: null, not_pattern: null }, [], signal) : null,
  }
}

export async function refuseRequest({ of }: Scene): Promise<Form<RefusalValues>> {
  const request = await requestOf(of)
  return {
    title: `Refuse ${request.site}`,
    verb: 'Refuse request',
    facts: factsOf(request),
    fields: [{ kind: 'text', name: 'answer', label: 'Reason, shown to the requester', isRequired: true, longest: 500 }],
    start: { answer: '' },
    commands: (values) => [['downburst', 'requests', 'refuse', of, orGap(values.answer)]],
    send: async (values) => {
      await call('POST', `access-requests/${request.number}/refusal`, { answer: textOf(values.answer) })
      return { notice: `The request of ${request.site} is refused.` }
    },
  }
}

/** Approval takes several requests; after a failure the next try begins where the last one ended. */
class Approval {
  private isApproved = false
  private subscribed: string[] = []

  constructor(private readonly request: AccessRequest) {}

  async send(values: ApprovalValues): Promise<Outcome> {
    const { site } = this.request
    await this.approve(values)
    if (values.isSubscribed) await this.subscribe(values)
    const shown = values.hasToken ? await this.enrolment(values) : []
    const notice = `${site} is approved for ${values.allow.join(', ')}.`
    return shown.length > 0 ? { notice, shown } : { notice }
  }

  private async approve({ allow, answer }: ApprovalValues): Promise<void> {
    if (this.isApproved) return
    const decision = { allow, ...given({ answer: textOf(answer) }) }
    await call<AccessRequest>('POST', `access-requests/${this.request.number}/approval`, decision)
    this.isApproved = true
  }

  private async subscribe(values: ApprovalValues): Promise<void> {
    const missing = values.allow.filter((feed) => !this.subscribed.includes(feed))
    const done = await subscribe(this.request.site, missing)
    this.subscribed.push(...done.added)
    if (done.refused.length === 0) return
    throw new Partly(`${this.request.site} is approved. ${refusedIn(this.request.site, done)}`, values)
  }

  private async enrolment(values: ApprovalValues): Promise<Shown[]> {
    const { site } = this.request
    try {
      const { token } = await call<TokenMade>('POST', `sites/${encodeURIComponent(site)}/tokens`)
      const whole = await call<OwnSite>('GET', `sites/${encodeURIComponent(site)}`)
      const text = `echo '${token}' > ${site}.token\n${receiveCommand(whole, location)}`
      return [{ title: 'Enrolment token, shown only once: commands for the site', text }]
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new Partly(`${site} is approved. Its enrolment token was not created: ${reason}`, values)
    }
  }
}

function commandsOf({ number, site }: AccessRequest, values: ApprovalValues): string[][] {
  const approve = ['downburst', 'requests', 'approve', String(number), ...each('--allow', values.allow)]
  const commands = [[...approve, ...option('--answer', values.answer)]]
  if (values.isSubscribed) commands.push(['downburst', 'subscriptions', 'add', site, ...values.allow])
  if (values.hasToken) commands.push(['downburst', 'sites', 'token', site, '-o', `${site}.token`])
  return commands
}

async function requestOf(number: string): Promise<AccessRequest> {
  const waiting = await call<AccessRequest[]>('GET', 'access-requests')
  const found = waiting.find((one) => String(one.number) === number)
  if (found === undefined) throw new Error(`No request ${number} is pending. It may have been answered already.`)
  return found
}

/** The feeds of the hub; those that are requested and missing here show why they cannot be chosen. */
function optionsFor({ feeds }: AccessRequest, { overview }: Scene): Option[] {
  const options = feedOptions(overview)
  const missing = feeds.filter((feed) => feed !== '*' && options.every((one) => one.value !== feed))
  return [...options, ...missing.map((feed) => ({ value: feed, label: feed, off: 'The hub has no such feed.' }))]
}

function requested({ feeds }: AccessRequest, options: Option[]): string[] {
  const possible = options.filter((one) => one.off === undefined).map((one) => one.value)
  return feeds.includes('*') ? possible : possible.filter((feed) => feeds.includes(feed))
}

function factsOf(request: AccessRequest): { name: string; value: string }[] {
  const facts = [
    { name: 'Organisation', value: request.organisation },
    { name: 'Contact', value: request.contact },
    { name: 'Place', value: request.place },
    { name: 'Requested', value: `${(request.asked_at ?? '').slice(0, 16).replace('T', ' ')} UTC from ${request.peer}` },
    { name: 'Note', value: request.note },
  ]
  return facts.filter((fact) => fact.value !== '')
}
