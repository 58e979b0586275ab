/** All forms by name; loaded when one opens. */
import type { Form, Values } from '../form'
import type { FormName } from '../names'
import type { Scene } from '../scene'
import { addFeed, changeFeed } from './feed'
import { feedObjective, siteObjective } from './objective'
import { allowFeeds, limitFeed } from './permission'
import { pinTransport } from './pin'
import { changeSite } from './properties'
import { removeFeed, removeSite, removeSource, removeUser } from './removal'
import { approveRequest, refuseRequest } from './request'
import { addSite } from './site'
import { acceptLdm, addUpstream, askLdm } from './source'
import { addSubscriptions } from './subscription'
import { changeUser, inviteUser } from './user'

type Kind<V extends Values = Values> = (scene: Scene) => Form<V> | Promise<Form<V>>

export const KINDS: Record<FormName, Kind> = {
  'feed.add': erased(addFeed),
  'feed.set': erased(changeFeed),
  'feed.pin': erased(pinTransport),
  'feed.objective': erased(feedObjective),
  'feed.remove': erased(removeFeed),
  'site.add': erased(addSite),
  'site.set': erased(changeSite),
  'site.allow': erased(allowFeeds),
  'site.limit': erased(limitFeed),
  'site.subscribe': erased(addSubscriptions),
  'site.objective': erased(siteObjective),
  'site.remove': erased(removeSite),
  'request.approve': erased(approveRequest),
  'request.refuse': erased(refuseRequest),
  'upstream.add': erased(addUpstream),
  'ldm.ask': erased(askLdm),
  'ldm.accept': erased(acceptLdm),
  'source.remove': erased(removeSource),
  'user.invite': erased(inviteUser),
  'user.set': erased(changeUser),
  'user.remove': erased(removeUser),
}

/** The drawer gives a form only values of its own start, so that their exact type may be forgotten. */
function erased<V extends Values>(kind: Kind<V>): Kind {
  return kind as unknown as Kind
}
