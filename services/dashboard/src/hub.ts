/** Calls the hub; a refusal is thrown with the hub's own sentence. */
export async function call<Answer>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Answer> {
  return (await asked<Answer>(method, path, { body, signal })).value
}

/** A value as it was read: a change with its tag is refused if the value has changed since. */
export interface Seen<Answer> {
  value: Answer
  tag: string | null
}

/** Asks for something that is changed later. */
export function look<Answer>(path: string): Promise<Seen<Answer>> {
  return asked<Answer>('GET', path, {})
}

/** Changes what was seen. */
export async function change(method: string, path: string, body: unknown, seen: Seen<unknown>): Promise<void> {
  await asked(method, path, { body, tag: seen.tag })
}

/** A refusal of the hub; the message is its sentence. */
export class Refusal extends Error {
  constructor(
    sentence: string,
    readonly status: number,
    /** The whole problem document. */
    readonly problem: unknown,
  ) {
    super(sentence)
  }
}

/** The sentence of whatever was thrown. */
export function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The sentence of a problem document. */
export function detail(body: unknown): string | null {
  const found = body !== null && typeof body === 'object' && 'detail' in body ? body.detail : null
  return typeof found === 'string' ? found : null
}

interface Wanted {
  body?: unknown
  signal?: AbortSignal | undefined
  tag?: string | null
}

async function asked<Answer>(method: string, path: string, wanted: Wanted): Promise<Seen<Answer>> {
  const headers: Record<string, string> = { accept: 'application/json' }
  const request: RequestInit = { method, headers }
  if (wanted.signal) request.signal = wanted.signal
  if (wanted.tag) headers['if-match'] = wanted.tag
  if (wanted.body !== undefined) {
    headers['content-type'] = 'application/json'
    request.body = JSON.stringify(wanted.body)
  }
  const answer = await fetch(`./v1/${path}`, request)
  const text = await answer.text()
  const answered: unknown = text === '' ? null : parsed(text)
  if (!answer.ok) {
    const sentence = detail(answered) ?? `The hub answered with status ${answer.status}. Try again.`
    throw new Refusal(sentence, answer.status, answered)
  }
  return { value: answered as Answer, tag: answer.headers.get('etag') }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
