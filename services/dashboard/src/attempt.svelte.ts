/** An action of the user, with the sentence that reports its result. */
import { sentenceOf } from './hub'

export class Attempt {
  /** Why the last one failed; empty if it did not. */
  problem = $state('')
  /** The result of the last one, if it is worth a sentence. */
  notice = $state('')

  /** Does something and shows `notice` when it succeeds. */
  async do(work: () => Promise<unknown>, notice = ''): Promise<void> {
    this.problem = ''
    this.notice = ''
    try {
      await work()
      this.notice = notice
    } catch (error) {
      this.problem = sentenceOf(error)
    }
  }

  /** Looks now and then periodically, for an effect; a later success clears the error of an earlier failure. */
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
