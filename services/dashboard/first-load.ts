import { gzipSync } from 'node:zlib'
import type { Plugin, Rollup } from 'vite'

/** A part of a build; of scripts, with the scripts that it always loads. */
export interface Part {
  code: string
  imports: readonly string[]
}

/** The scripts of a first visit: the entry's and those that it imports, without those that are imported later. */
export function firstLoad(entry: string, parts: ReadonlyMap<string, Part>): string[] {
  const found = new Set<string>()
  const waiting = [entry]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const part = parts.get(name)
    if (part === undefined || found.has(name)) continue
    found.add(name)
    waiting.push(...part.imports)
  }
  return [...found]
}

/** The bytes of these scripts as a server sends them, compressed one by one. */
export function compressed(names: readonly string[], parts: ReadonlyMap<string, Part>): number {
  return names.reduce((sum, name) => sum + gzipSync(parts.get(name)?.code ?? '', { level: 9 }).length, 0)
}

/** Fails a build whose page needs more than `most_bytes` of compressed script before it shows anything. */
export function firstLoadBelow(most_bytes: number, page: string): Plugin {
  return {
    name: 'first-load',
    apply: 'build',
    generateBundle(_options, bundle) {
      const chunks = Object.values(bundle).filter((one): one is Rollup.OutputChunk => one.type === 'chunk')
      const parts = new Map(chunks.map((one): [string, Part] => [one.fileName, one]))
      const entry = chunks.find((one) => one.isEntry && one.facadeModuleId?.endsWith(page))
      if (entry === undefined) this.error(`The build has no page ${page}.`)
      const bytes = compressed(firstLoad(entry.fileName, parts), parts)
      const words = `${page}: ${Math.round(bytes / 1000)} kB of script in the first load, compressed`
      if (bytes > most_bytes) this.error(`${words}; at most ${most_bytes / 1000} kB. Load a part later by import().`)
      this.info(words)
    },
  }
}
