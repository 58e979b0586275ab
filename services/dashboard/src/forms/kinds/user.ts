/** Users: an invitation by a link, and other rights. */
import type { User, UserChange, UserInvited, UserNew } from '../../api'
import { call } from '../../hub'
import { option, orGap } from '../command'
import { given, textOf, type Form } from '../form'
import { siteOptions, type Scene } from '../scene'
import { USER_NAME } from '../shapes'

type UserValues = { user: string; role: string; site: string }
type RightValues = { role: string; site: string; active: boolean }

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

/** A user who signs in at a provider has the role of a group there, so that only access can be taken away. */
export async function changeUser({ of: user, overview }: Scene): Promise<Form<RightValues>> {
  const path = `users/${encodeURIComponent(user)}`
  const now = await call<User>('GET', path)
  const isLocal = now.issuer === null
  const sites = siteOptions(overview)
  const start = { role: now.role, site: now.site ?? sites[0]?.value ?? '', active: now.active }
  return {
    title: `Rights of ${user}`,
    verb: 'Save rights',
    facts: isLocal ? [] : [{ name: 'Role', value: `${now.role}, by the groups at ${now.issuer}` }],
    fields: [
      { kind: 'choice', name: 'role', label: 'Role', options: ROLES, isShown: () => isLocal },
      {
        kind: 'choice',
        name: 'site',
        label: 'Site',
        options: sites,
        isShown: (values) => isLocal && values.role === 'site',
      },
      { kind: 'check', name: 'active', label: 'May sign in', hint: 'A user who loses rights is signed out.' },
    ],
    start,
    commands: (values) => [['downburst', 'users', 'set', user, ...rightsOf(start, values)]],
    send: async (values) => {
      const wanted = changeOf(start, values)
      if (Object.keys(wanted).length === 0) throw new Error('No right is different yet.')
      const kept = await call<User>('PATCH', path, wanted)
      return { notice: `${user} has the role ${kept.role}${kept.active ? '' : ' and may not sign in'}.` }
    },
  }
}

/** Only the difference; a role and its site go together. */
function changeOf(start: RightValues, values: RightValues): UserChange {
  const site = values.role === 'site' ? values.site : null
  const isOther = values.role !== start.role || (values.role === 'site' && values.site !== start.site)
  return {
    ...(isOther ? { role: values.role as User['role'], site } : {}),
    ...(values.active === start.active ? {} : { active: values.active }),
  }
}

function rightsOf(start: RightValues, values: RightValues): string[] {
  const { role, site, active } = changeOf(start, values)
  return [
    ...option('--role', role),
    ...option('--site', site),
    ...(active === undefined ? [] : [active ? '--active' : '--inactive']),
  ]
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
