/** What people try on a page, and the sentence of what came of it. */
import { sentenceOf } from './hub'

export class Attempt {
  /** Why the last one failed; empty if it did not. */
  problem = $state('')
  /** What the last one did, where that is worth a sentence. */
  told = $state('')

  /** Does something; `said` is told when it was done. */
  async do(work: () => Promise<unknown>, said = ''): Promise<void> {
    this.problem = ''
    this.told = ''
    try {
      await work()
      this.told = said
    } catch (error) {
      this.problem = sentenceOf(error)
    }
  }

  /** Looks now and then every so often, for an effect; a hub that was away for a moment is not held against it. */
  follow(every_ms: number, work: () => Promise<unknown>): () => void {
    let failed = ''
    const again = () =>
      work().then(
        () => {
          if (failed !== '' && this.problem === failed) this.problem = ''
          failed = ''
        },
        (error: unknown) => (this.problem = failed = sentenceOf(error)),
      )
    void again()
    const timer = setInterval(() => void again(), every_ms)
    return () => clearInterval(timer)
  }
}
