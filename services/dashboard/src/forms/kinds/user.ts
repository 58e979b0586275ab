/** A user who is invited by a link. */
import type { UserInvited, UserNew } from '../../api'
import { call } from '../../hub'
import { option, orGap } from '../command'
import { given, textOf, type Form } from '../form'
import { siteOptions, type Scene } from '../scene'
import { USER_NAME } from '../shapes'

type UserValues = { user: string; role: string; site: string }

export function inviteUser({ overview }: Scene): Form<UserValues> {
  const sites = siteOptions(overview)
  return {
    title: 'Invite user',
    verb: 'Invite user',
    fields: [
      { kind: 'text', name: 'user', label: 'Name', isRequired: true, longest: 64, shape: USER_NAME },
      { kind: 'choice', name: 'role', label: 'Role', options: ROLES },
      {
        kind: 'choice',
        name: 'site',
        label: 'Site',
        options: sites,
        isShown: (values) => values.role === 'site',
      },
    ],
    start: { user: '', role: 'viewer', site: sites[0]?.value ?? '' },
    commands: (values) => [
      [
        ...['downburst', 'users', 'add', orGap(values.user), '--role', values.role],
        ...(values.role === 'site' ? option('--site', orGap(values.site)) : []),
      ],
    ],
    send: async (values) => {
      const made = await call<UserInvited>('POST', 'users', requestOf(values))
      const text = new URL(made.fragment, location.href).href
      return { notice: `${made.user} is invited.`, shown: [{ title: 'Invitation link, for one use in a week', text }] }
    },
  }
}

function requestOf(values: UserValues): UserNew {
  return {
    user: textOf(values.user) ?? '',
    role: values.role as UserNew['role'],
    ...given({ site: values.role === 'site' ? textOf(values.site) : null }),
  }
}

const ROLES = [
  { value: 'viewer', label: 'viewer', note: 'sees everything, changes nothing' },
  { value: 'site', label: 'site', note: 'administers one site' },
  { value: 'operator', label: 'operator', note: 'changes feeds, sites and plans' },
  { value: 'admin', label: 'admin', note: 'also users and tokens' },
]
