import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'vite'

/** Answers the page's questions from a recorded overview while developing; it is no part of a build. */
export function recordedHub(): Plugin {
  return {
    name: 'recorded-hub',
    apply: 'serve',
    configureServer(server) {
      server.middlewares.use('/v1/session', (_request, response) => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(VIEWER))
      })
      server.middlewares.use('/v1/overview', (_request, response) => {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify(recordedAt(Date.now())))
      })
      server.middlewares.use('/v1/events', (_request, response) => {
        response.setHeader('content-type', 'text/event-stream')
        sendEachSecond(response)
      })
    },
  }
}

function sendEachSecond(response: ServerResponse): void {
  const send = () => response.write(`event: overview\ndata: ${JSON.stringify(recordedAt(Date.now()))}\n\n`)
  send()
  const timer = setInterval(send, 1000)
  response.on('close', () => clearInterval(timer))
}

/** Shifts the recording in time so that it reads as if it were taken at the given moment. */
function recordedAt(now: number): unknown {
  const recording = JSON.parse(readFileSync(RECORDING, 'utf8')) as { now: string }
  const shift = now - Date.parse(recording.now)
  return JSON.parse(JSON.stringify(recording), (_key, value: unknown) =>
    typeof value === 'string' && ISO_TIME.test(value) ? new Date(Date.parse(value) + shift).toISOString() : value,
  )
}

const VIEWER = { user: null, role: null, site: null, scopes: ['read', 'latency'], hub: 'recorded' }
const RECORDING = fileURLToPath(new URL('./src/fixtures/overview.json', import.meta.url))
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d/
