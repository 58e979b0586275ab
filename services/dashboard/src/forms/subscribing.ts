/** Subscribes a site to feeds one by one: a refusal hinders no other feed. */
import type { Subscription, SubscriptionNew } from '../api'
import { call, sentenceOf } from '../hub'

export interface Subscribed {
  added: string[]
  refused: { feed: string; sentence: string }[]
}

export async function subscribe(
  site: string,
  feeds: readonly string[],
  further: Omit<SubscriptionNew, 'feed'> = {},
): Promise<Subscribed> {
  const done: Subscribed = { added: [], refused: [] }
  for (const feed of feeds) {
    try {
      await call<Subscription>('POST', `sites/${encodeURIComponent(site)}/subscriptions`, { feed, ...further })
      done.added.push(feed)
    } catch (error) {
      done.refused.push({ feed, sentence: sentenceOf(error) })
    }
  }
  return done
}

/** The sentence on the feeds that were refused, after those that were not. */
export function refusedIn(site: string, { added, refused }: Subscribed): string {
  const first = added.length > 0 ? `${site} is subscribed to ${added.join(', ')}. ` : ''
  return `${first}${refused.map(({ feed, sentence }) => `${feed} was refused: ${sentence}`).join('. ')}`
}
