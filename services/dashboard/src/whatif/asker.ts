/** Asks for the last of quickly changing conditions: first for the choice, then for its flips. */

export interface Shown<Answer> {
  ask: (flips: boolean, signal: AbortSignal) => Promise<Answer>
  show: (answer: Answer, isSearching: boolean) => void
  fail: (error: unknown) => void
}

export class Asker<Answer> {
  private timer: ReturnType<typeof setTimeout> | undefined
  private asking: AbortController | undefined

  /** Milliseconds that conditions must rest before they are asked about, and before their flips are searched. */
  constructor(
    private readonly rest_ms = 150,
    private readonly search_ms = 400,
  ) {}

  /** Drops what was asked before: the last conditions win, whatever comes first. `search`: flips are wanted, too. */
  want(shown: Shown<Answer>, search = true): void {
    this.stop()
    const asking = (this.asking = new AbortController())
    this.timer = setTimeout(() => void this.run(shown, asking, search), this.rest_ms)
  }

  stop(): void {
    clearTimeout(this.timer)
    this.asking?.abort()
  }

  private async run(shown: Shown<Answer>, asking: AbortController, search: boolean): Promise<void> {
    const isGood = await this.step(shown, asking, false)
    if (isGood && search) this.timer = setTimeout(() => void this.step(shown, asking, true), this.search_ms)
  }

  private async step(shown: Shown<Answer>, asking: AbortController, flips: boolean): Promise<boolean> {
    try {
      const answer = await shown.ask(flips, asking.signal)
      if (asking.signal.aborted) return false
      shown.show(answer, !flips)
      return true
    } catch (error) {
      if (!asking.signal.aborted) shown.fail(error)
      return false
    }
  }
}
