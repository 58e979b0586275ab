/** Asks the hub; what it refuses is thrown as its own sentence. */
export async function call<Answer>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
  const request: RequestInit = { method, headers: { accept: 'application/json' } }
  if (signal) request.signal = signal
  if (body !== undefined) {
    request.headers = { ...request.headers, 'content-type': 'application/json' }
    request.body = JSON.stringify(body)
  }
  const answer = await fetch(`./v1/${path}`, request)
  const text = await answer.text()
  const said: unknown = text === '' ? null : parsed(text)
  if (!answer.ok) throw new Error(detail(said) ?? `the hub answered ${answer.status}; try again`)
  return said as Answer
}

/** The sentence of a problem document. */
export function detail(body: unknown): string | null {
  const found = body !== null && typeof body === 'object' && 'detail' in body ? body.detail : null
  return typeof found === 'string' ? found : null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
