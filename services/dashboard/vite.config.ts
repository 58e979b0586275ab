import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig } from 'vitest/config'

import { firstLoadBelow } from './first-load'
import { recordedHub } from './recorded-hub'

// `npm run dev` plays a recorded overview; DOWNBURST_HUB=http://127.0.0.1:7371 npm run dev shows a real hub.
const hub = process.env['DOWNBURST_HUB']

export default defineConfig({
  // Relative addresses work behind a proxy that serves the hub under a path.
  base: './',
  plugins: [svelte(), firstLoadBelow(300_000, 'index.html'), ...(hub ? [] : [recordedHub()])],
  server: hub ? { proxy: { '/v1': hub } } : {},
  // What draws the api's own page is large, and loaded by that page alone.
  build: {
    target: 'es2022',
    sourcemap: false,
    chunkSizeWarningLimit: 1600,
    rollupOptions: { input: ['index.html', 'docs.html'] },
  },
  test: { include: ['src/**/*.test.ts'] },
})
