// Generated from docs/openapi.json by `npm run types`; a test compares. Not to be edited.

/** A site that asks to be served, with the decision about it. */
export interface AccessRequest {
  site: string
  organisation: string
  contact: string
  place: string
  multicast_interface: string
  access_rate_bps: number | null
  feeds: string[]
  note: string
  number: number
  peer: string
  asked_at: string | null
  state: RequestState
  decided_at: string | null
  decided_by: string
  answer: string
  /** The user that its approval made, while that one is kept. */
  invites: string | null
}

/** A program's right to use the API until it expires or is revoked; without its secret. */
export interface AccessToken {
  number: number
  /** What it is for, in the words of whoever made it. */
  name: string
  role: Role
  scopes: Scope[]
  site: string | null
  created_at: string
  created_by: string
  expires_at: string
  revoked_at: string | null
}

/** An access token with its text, which is shown only here. */
export interface AccessTokenMade {
  number: number
  /** What it is for, in the words of whoever made it. */
  name: string
  role: Role
  scopes: Scope[]
  site: string | null
  created_at: string
  created_by: string
  expires_at: string
  revoked_at: string | null
  token: string
}

/** An access token to make. */
export interface AccessTokenNew {
  name: string
  role: Role
  /** Fewer than the role has; all of the role's if left out. */
  scopes?: Scope[] | null
  site?: string | null
  days?: number
}

/** What a site's own rules could not do with a product. */
export interface ActionFailed {
  /** The file and the line. */
  rule: string
  /** Of the program, or minus the signal that ended it; null if none ended. */
  exit: number | null
  last_error: string
  product: string
  sequence: number
  epoch: string | null
  /** For how many products of the feed rules failed; this one counts. */
  count: number
  others: number[]
}

/** A place to go or a thing to do; clients word it. */
export type ActionKind = 'open-site' | 'open-feed' | 'open-latency' | 'open-circuit' | 'probe-path' | 'preview-move'

/** A test point with its token, which is shown this once. */
export interface AddedTestPoint {
  point: string
  addresses: string[]
  site: string | null
  created_at: string | null
  token: string
  /** The path to which its archiver posts results. */
  archive_path: string
}

/** Sites and feeds that an incident affects. */
export interface Affected {
  sites: number
  feeds: number
  /** Products that wait at the hub for the site; null: not counted. */
  waiting_products: number | null
  waiting_bytes: number | null
  /** Products that left the hub's log before the site had them. */
  lost_products: number | null
  /** When the first of the waiting products leaves the hub's log; null: none waits. */
  kept_until: string | null
  words: string | null
}

/** A condition from its first look to its end, and the silence that stops notifications, if any. */
export interface Alarm {
  alarm: number
  kind: AlarmKind
  feed: string | null
  site: string | null
  /** What else it is about, a circuit for one. */
  subject: string
  sentence: string
  next_step: string
  since: string
  ended_at: string | null
  /** When receivers were told; null: a silence covers it, or nobody was told yet. */
  told_at: string | null
  /** The worst that it has been. */
  severity: Severity
  silenced_until: string | null
  silence: Silence | null
}

/** What an alarm is about. */
export type AlarmKind = 'objective' | 'silence' | 'site-down' | 'site-disk' | 'linked-files' | 'action' | 'stalled' | 'group-loss' | 'heartbeat' | 'site-violation' | 'peer-violation' | 'clock' | 'credential' | 'hub-disk' | 'retention' | 'circuit' | 'prediction' | 'damaged-data' | 'internal-fault' | 'part-silent'

/** A page of alarms. */
export interface AlarmPage {
  items: Alarm[]
  /** The cursor of the next page; null: there is none. */
  next: number | null
}

/** The process answers. */
export interface Alive {
  status: string
}

/** A product on its way to a broker. */
export interface AnnouncedProduct {
  product_id: string
  sequence: number
  data_id: string
  /** Of the notification. */
  id: string
  kind: string
  topic: string
  step: 'waiting' | 'announced' | 'refused' | 'expired'
  made_at: string
  announced_at: string | null
  /** Of a refusal. */
  reason: string
  /** As it is sent; null if it is refused. */
  notification: Record<string, unknown> | null
}

/** The announcement of a product by a publisher of this hub, or the refusal of it. */
export interface Announcement {
  publisher: string
  notification_id: string
  data_id: string
  kind: string
  topic: string
  step: string
  announced_at: string | null
  reason: string
}

/** The profile that applies to the connections of a site, by the node that serves it. */
export interface AppliedProfile {
  profile: string
  state: ProfileState
  knobs: TcpKnobs
}

/** Which feeds the site may take; what it asked for, if left out. */
export interface Approval {
  allow?: string[] | null
  answer?: string
}

/** The fate of a result: a refused one is kept with the reason. */
export interface Archived {
  taken: boolean
  /** The reason for which there is no figure; empty if there is one. */
  reason: string
}

/** What came into a feed in one step. */
export interface Arrivals {
  at: string
  products: number
  bytes: number
  peak_1s_bytes: number
}

/** Where circuits end at a site: a port or an STP, and the VLANs usable there (first, last). */
export interface Attachment {
  port: string
  first_vlan: number
  last_vlan: number
}

/** Port or STP where circuits end, and the usable VLANs. */
export interface AttachmentShape {
  port: string
  first_vlan: number
  last_vlan: number
}

/** How many latencies lie between two bounds. */
export interface Bin {
  from_ms: number
  to_ms: number
  count: number
}

/** A test with its place in the calendar. */
export interface BookedTest {
  number: number
  /** What it is among the reservations of a calendar. */
  kind?: 'test'
  /** The kind of test. */
  test: string
  /** The near one first. */
  ports: string[]
  sites: string[]
  path: CircuitHop[]
  rate_out_bps: number
  rate_in_bps: number
  begin: string
  end: string
  /** The circuit inside which it runs; null: it has a reservation of its own. */
  circuit: number | null
  by: string
}

/** A grant, or the moment at which to ask again; a refusal is a problem document. */
export interface BookingAnswered {
  granted: boolean
  sentence: string
  /** Of a test that has to wait: the first moment at which it would fit now. */
  begin: string | null
  booking: BookedTest | null
}

/** A source of WIS2 with the state of its brokers and the number of its products. */
export interface Bridge {
  bridge: string
  feed: string
  brokers: BrokerState[]
  topics: string[]
  takes_recommended: boolean
  bytes_per_day: number | null
  may_ask_private: boolean
  enabled: boolean
  /** A Global Replay service, which is asked for what brokers have dropped. */
  replay_url: string | null
  /** At servers of recommended data. */
  logins: LoginShown[]
  created_at: string | null
  products: BridgeProducts
  /** Topics that are unwise, each with the reason. */
  advice: string[]
  pace: BridgePace
}

/** Properties of a source; those left out keep their value. */
export interface BridgeChange {
  feed?: string | null
  /** Several bring the same notifications: each product is taken once. */
  brokers?: BrokerWanted[] | null
  /** Topics, in which `+` stands for one level, and `#` at the end for all below. */
  topics?: string[] | null
  takes_recommended?: boolean | null
  /** The limit of each centre; null: none. */
  bytes_per_day?: number | null
  /** Products may be fetched from private networks. */
  may_ask_private?: boolean | null
  enabled?: boolean | null
  /** A Global Replay service, which is asked for what brokers have dropped; null: none. */
  replay_url?: string | null
  /** All of them: those that are left out are forgotten. */
  logins?: LoginWanted[] | null
}

/** The speed of a source since the hub has started, or the source was changed. */
export interface BridgePace {
  /** The age of the oldest product that is still to be fetched, or the delay of the newest notification, whichever
      is longer; null: nothing has come yet. */
  behind_s: number | null
  /** The receipt of the oldest product that is still to be fetched; null: none is. */
  oldest_coming_at: string | null
  /** The last ones that were stored, at most 1,000, of which the next two figures are. */
  products: number
  /** From publication to this hub's log. */
  p50_s: number | null
  p99_s: number | null
}

/** The number of a source's products by state, in the last two days. */
export interface BridgeProducts {
  /** They were announced and are still to be fetched. */
  coming: number
  /** Their centres have used up their bytes of the day. */
  waiting: number
  held: number
  /** Nothing is tried for them any more: `GET …/failed` has the reasons. */
  failed: number
}

/** A source of WIS2 whose products go into a feed. */
export interface BridgeWanted {
  bridge: string
  feed: string
  /** Several bring the same notifications: each product is taken once. */
  brokers: BrokerWanted[]
  /** Topics, in which `+` stands for one level, and `#` at the end for all below. */
  topics: string[]
  takes_recommended?: boolean
  /** The limit of each centre; null: none. */
  bytes_per_day?: number | null
  /** Products may be fetched from private networks. */
  may_ask_private?: boolean
  enabled?: boolean
  /** A Global Replay service, which is asked for what brokers have dropped; null: none. */
  replay_url?: string | null
  /** At servers of recommended data. */
  logins?: LoginWanted[]
}

/** The way of a product from another system, and to others. */
export interface Bridged {
  /** The statements of its source as they came, at most 8 KiB; null: it made none. */
  properties: string | null
  /** Those of WIS2, read. */
  statement: Wis2Statement | null
  /** By publishers, for as long as they serve it. */
  announced: Announcement[]
}

/** The health of a connection to a broker. */
export type BrokerHealth = 'good' | 'warning' | 'error' | 'off'

/** A time in which a broker may have dropped notifications. */
export interface BrokerHole {
  number: number
  broker: string
  from_at: string
  to_at: string
  reason: string
  /** The time from which another broker, or a replay, has brought all of it; null: not yet. */
  filled_at: string | null
  /** The address of that broker or replay service. */
  filled_by: string | null
  /** The reason for which a replay has not filled it; empty: none has failed. */
  fault: string
}

/** A broker with the state of the subscription there, without its password. */
export interface BrokerState {
  url: string
  user: string
  mqtt: number
  /** Null: it is not connected, for the reason in `fault`. */
  connected_at: string | null
  /** The broker kept the session since the last connection. */
  session_present: boolean
  /** Topics that the broker has accepted. */
  bound: number
  /** Topics that it has refused, each with the reason. */
  refused: string[]
  /** The last message; of a publisher, the last announcement that the broker has acknowledged with reason 0. */
  last_at: string | null
  /** The reason for which it is not connected; empty while it is. */
  fault: string
  health: BrokerHealth
  /** The reason for the health. */
  sentence: string
  /** Over the last minute; null for a publisher, and while there is no subscription. */
  messages_per_s: number | null
  /** From publication to receipt, of the last notification; null: none could be read yet. */
  delay_s: number | null
}

/** A broker of notifications. */
export interface BrokerWanted {
  /** `mqtts://HOST[:PORT]`, `mqtt://…`, `wss://HOST[:PORT]/PATH` or `ws://…`. */
  url: string
  user?: string
  password?: string
  /** The version of MQTT: 5, or 311 for 3.1.1. */
  mqtt?: 5 | 311
}

/** The calendar of a window. */
export interface Calendar {
  now: string
  begin: string
  end: string
  /** Links, then hosts, then ports, each by name. */
  resources: CalendarResource[]
  /** The newest first. */
  reservations: CalendarReservation[]
  maintenance: CalendarMaintenance[]
  /** Running tests and the last of those that are over, the newest first. Null: the part that books them is away. */
  tests: CalendarTest[] | null
  /** Whether older circuits of the window were left out, as it has too many; ask for a shorter window. */
  left_out: boolean
}

/** A window in which resources take no new reservation. */
export interface CalendarMaintenance {
  name: string
  reason: string
  begin: string
  end: string
  /** Places in `resources`. */
  resources: number[]
}

/** A circuit in the calendar. */
export interface CalendarReservation {
  circuit: number
  /** As people see it, with an override. */
  state: CircuitState
  /** When it expires unless it is committed; null: it isn't held. */
  held_until: string | null
  begin: string
  /** Of a finished circuit the moment at which it finished. Null: until it is cancelled. */
  end: string | null
  rate_out_bps: number
  rate_in_bps: number
  /** The rate that its near end sends: a copy for each far end, unless the underlay copies. */
  near_out_bps: number
  near_in_bps: number
  description: string
  sites: string[]
  /** Places in `resources` with the rate out in their direction out: the near end, links from `a` to `z`. */
  along: number[]
  /** Places in `resources` with the rate out in their direction in: far ends, links from `z` to `a`. */
  against: number[]
}

/** Something that circuits reserve a rate of. */
export interface CalendarResource {
  /** Its name in refusals: `link west`, `host unl`, a port by its name alone. */
  key: string
  kind: ResourceKind
  name: string
  /** Of a link: the switch or port at its end `a`; of a port: its host, or empty; of a host: empty. */
  a: string
  /** Of a link: the switch or port at its end `z`; else empty. */
  z: string
  /** The site of a port or host, or the other network that has it; null: this hub, or a link. */
  owner: string | null
  /** Of a port on the host of one of the hub's senders, that sender; null: it is elsewhere. */
  sender: string | null
  /** Of a link: from `a` to `z`; else: sent. */
  rate_out_bps: number
  rate_in_bps: number
}

/** A test with load, which books its rate for some seconds. */
export interface CalendarTest {
  number: number
  /** What it is among the reservations of a calendar. */
  kind?: 'test'
  /** The kind of test. */
  test: string
  begin: string
  end: string
  rate_out_bps: number
  rate_in_bps: number
  by: string
  /** The circuit inside which it runs; null: it has a reservation of its own. */
  circuit: number | null
  /** Places in `resources` as of a circuit; inside one its ports alone. */
  along: number[]
  against: number[]
}

/** One transport as the scheduler judged it. */
export interface Candidate {
  transport: Transport
  feasible: boolean
  reason: string
  /** Mean egress of the hub for this feed. */
  egress_bps: number | null
  peak_egress_bps: number | null
  predicted_p50_ms: number | null
  predicted_p95_ms: number | null
  predicted_p99_ms: number | null
  predicted_max_ms: number | null
  /** Rates of circuits over the time that they would be up. */
  reserved_bps: number | null
  /** What egress, circuits and unwanted bytes cost, as bits per second of egress. */
  price_bps: number | null
  /** The price, and what it costs that the objective is missed; the lowest is best. */
  score_bps: number | null
}

/** What happens to bytes beyond the rate. */
export type Cap = 'hard' | 'soft'

/** A stream that brought several sites what they all lacked of a feed after an outage. */
export interface CatchUp {
  /** Its number, as of a leg. */
  leg: number
  /** The leg that it ran beside. */
  live_leg: number
  state: 'began' | 'ended'
  /** The time of this state. */
  at: string
  /** Those that were offered it; at the end those that received it. */
  sites: string[]
  from_sequence: number
  to_sequence: number
  /** The bytes that the sites lacked of the range together. */
  lacked_bytes: number
  /** Payload of the stream, with repairs; 0 before its end. */
  sent_bytes: number
  /** The bytes that a copy for each site would have needed beyond the stream's; 0 before its end. */
  saved_bytes: number
  /** The price by one stream and by copies; at the end, the result. */
  sentence: string
}

/** What keeps a product from a site or from its local software, as a word for programs; names are promises. */
export type Cause = 'not-subscribed' | 'filtered' | 'denied' | 'queued-behind' | 'site-down' | 'left-the-log' | 'too-old' | 'deadline' | 'digest-mismatch' | 'action-failed' | 'disk'

/** Who sets a ceiling: both hold. */
export type CeilingSide = 'site' | 'operator'

/** A site's state in a quarter hour. */
export type CellState = 'down' | 'late' | 'no-report' | 'within' | 'nothing' | 'unread'

/** The account of a centre for a day, UTC. */
export interface CentreAccount {
  centre: string
  day: string
  products: number
  /** As announced, or as fetched where no length was announced. */
  bytes: number
  /** Notifications of products that came before. */
  copies: number
  refused: number
  failed: number
  /** Products that are being fetched, or are next. */
  coming: number
  /** Products for which the centre has no bytes left today: they come on a later day. */
  waiting: number
  waiting_bytes: number
}

/** How far a latency can be trusted, by the bound of the clocks that measured it. */
export type Certainty = 'known' | 'not known' | 'clock'

/** One change; `before` and `after` hold what differs, or the whole of what was added or removed. */
export interface Change {
  number: number
  at: string
  who: string
  role: string | null
  peer: string
  action: string
  kind: string
  subject: string
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
}

/** A page of changes. */
export interface ChangePage {
  items: Change[]
  /** The cursor of the next page; null: there is none. */
  next: number | null
}

/** A rate-guaranteed path: its reservation, the rates that it was measured to carry, the rates in use. */
export interface Circuit {
  circuit: number
  /** As people see it, with an override. */
  state: CircuitState
  /** Why it is in this state, in a sentence. */
  reason: string
  /** By the probes alone; feeds use no circuit against it. */
  probed_state: CircuitState
  /** Active or down, as an administrator set it; null: it is as its probes say. */
  overridden: CircuitState | null
  override_reason: string | null
  override_by: string | null
  /** When it expires unless it is committed; null: it isn't held. */
  held_until: string | null
  shape: CircuitShape
  sites: string[]
  since: string | null
  created_at: string | null
  request_id: string
  /** The near one first: the hub's, or of two sites the first. */
  ends: End[]
  /** The links between them; empty: only the ports and their hosts are reserved. */
  path: CircuitHop[]
  rate_out_bps: number
  rate_in_bps: number
  begin: string
  /** Null: until it is cancelled. */
  end: string | null
  driver: CircuitDriver
  replication: Replication
  group: string | null
  cap: Cap
  /** What is sent into it at most, as a share of its rate. */
  shaped_share: number
  burst_bytes: number | null
  /** The record of the provider that is asked; null for other drivers. */
  provider: string | null
  description: string
  /** Under which somebody else made it. */
  ticket: string
  requested_by: string
  creation: CircuitCreation
  /** Links and switches that its path was to pass. */
  include: string[]
  /** Links and switches that its path was not to pass. */
  exclude: string[]
  path_order: PathOrder
  layer: 'ethernet-frame'
  /** By the site that gets least; null until it was measured. */
  measured_out_bps: number | null
  measured_in_bps: number | null
  measured_at: string | null
  used_out_bps: number
  used_in_bps: number
  measurements: Measurement[]
}

/** What became of a request; `done` is false for a dry run, and for a circuit that was made before. */
export interface CircuitAnswered {
  circuit: number
  /** As people see it, with an override. */
  state: CircuitState
  /** Why it is in this state, in a sentence. */
  reason: string
  /** By the probes alone; feeds use no circuit against it. */
  probed_state: CircuitState
  /** Active or down, as an administrator set it; null: it is as its probes say. */
  overridden: CircuitState | null
  override_reason: string | null
  override_by: string | null
  /** When it expires unless it is committed; null: it isn't held. */
  held_until: string | null
  shape: CircuitShape
  sites: string[]
  since: string | null
  created_at: string | null
  request_id: string
  /** The near one first: the hub's, or of two sites the first. */
  ends: End[]
  /** The links between them; empty: only the ports and their hosts are reserved. */
  path: CircuitHop[]
  rate_out_bps: number
  rate_in_bps: number
  begin: string
  /** Null: until it is cancelled. */
  end: string | null
  driver: CircuitDriver
  replication: Replication
  group: string | null
  cap: Cap
  /** What is sent into it at most, as a share of its rate. */
  shaped_share: number
  burst_bytes: number | null
  /** The record of the provider that is asked; null for other drivers. */
  provider: string | null
  description: string
  /** Under which somebody else made it. */
  ticket: string
  requested_by: string
  creation: CircuitCreation
  /** Links and switches that its path was to pass. */
  include: string[]
  /** Links and switches that its path was not to pass. */
  exclude: string[]
  path_order: PathOrder
  layer: 'ethernet-frame'
  /** By the site that gets least; null until it was measured. */
  measured_out_bps: number | null
  measured_in_bps: number | null
  measured_at: string | null
  used_out_bps: number
  used_in_bps: number
  measurements: Measurement[]
  done: boolean
}

/** When another circuit like one begins; it lasts as long. */
export interface CircuitClone {
  begin?: string
  request_id?: string | null
  by?: string
}

/** When the path of a circuit is created. */
export type CircuitCreation = 'automatic' | 'by-hand'

/** Who makes a circuit. */
export type CircuitDriver = 'linux' | 'declared' | 'nsi'

/** Something that happened to a circuit. */
export interface CircuitEvent {
  at: string
  event: string
  /** After it. */
  state: CircuitState
  sentence: string
  /** For a failure: at what the circuit failed. */
  step: string
  /** For a failure: where. */
  hop: string
  /** For a failure: what to do. */
  remedy: string
  by: string
}

/** A link of the topology on the path of a circuit, from the hub on. */
export interface CircuitHop {
  link: string
  /** Whether the path takes it from its end `a` to its end `z`. */
  forward: boolean
  /** The tag there; null: untagged, or not assigned. */
  tag: number | null
}

/** What may change of a circuit, all or nothing; `end` null lets it last until it is cancelled. */
export interface CircuitModify {
  rate_out_bps?: number | null
  rate_in_bps?: number | null
  /** While the window has not begun. */
  begin?: string | null
  end?: string | null
  burst_bytes?: number | null
  by?: string
}

/** A circuit to reserve; the same request id with the same content again is answered with the same circuit. */
export interface CircuitNew {
  /** Seconds for which it is only held: without a commit it then expires; null: reserved outright. */
  hold_s?: number | null
  /** By hand: its path is created on request during the window. */
  creation?: CircuitCreation
  /** Links and switches that its path must pass. */
  include?: string[]
  /** Links and switches that its path must not pass. */
  exclude?: string[]
  path_order?: PathOrder
  layer?: 'ethernet-frame'
  driver?: CircuitDriver
  replication?: Replication
  group?: string | null
  cap?: Cap
  shaped_share?: number
  burst_bytes?: number | null
  /** With the driver `nsi`: the record of the provider that is asked. */
  provider?: string | null
  request_id?: string | null
  /** The near end; null: the circuit joins two sites, of which the first is the near end. */
  hub?: EndNew | null
  sites: EndNew[]
  rate_out_bps: number
  rate_in_bps?: number
  /** `now`, RFC 3339 with an offset, or so long from now: `+2h`. */
  begin?: string
  /** As `begin`; left out: until it is cancelled. With `+`: so long after the begin. */
  end?: string | null
  description?: string
  ticket?: string
  by?: string
}

/** Point-to-point circuits that the scheduler may order. */
export interface CircuitOffer {
  offer: string
  provider: string
  hub_port: string
  ports: string[]
  rates_bps: number[]
  price: number | null
  setup_s: number
  least_hold_s: number
  circuit_hours_a_day: number | null
  orders_a_day: number | null
  created_at: string | null
  /** Null: no circuit has been set up yet. */
  measured: MeasuredSetups | null
  used_today: UsedToday
}

/** An offer, without its name. */
export interface CircuitOfferWanted {
  /** `linux`: the hub's own nodes make the circuits; else the name of a provider's record. */
  provider?: string
  /** The hub's port, or that of a relay: its circuits carry the segment between two relays on the ways of sites. */
  hub_port: string
  /** Ports of sites, or of relays behind the relay of `hub_port`; an order joins that port with one of them. */
  ports: string[]
  /** The rates that can be ordered, in ascending order. */
  rates_bps: number[]
  /** The cost of a reserved bit per second relative to one of egress; null: the setting `scheduler.circuit_cost`. */
  price?: number | null
  /** The set-up time that the provider states, in seconds; measured times count instead once there are some. */
  setup_s?: number
  /** The shortest time for which a circuit is ordered, in seconds. */
  least_hold_s?: number
  /** The most hours reserved between two midnights UTC, summed over circuits; null: no limit. */
  circuit_hours_a_day?: number | null
  /** The most orders between two midnights UTC; null: no limit. */
  orders_a_day?: number | null
}

/** All offers, by name. */
export interface CircuitOffers {
  offers: CircuitOffer[]
}

/** An order of a circuit on demand, from the decision to the outcome. */
export interface CircuitOrder {
  order: number
  offer: string
  feed: string
  site: string
  rate_bps: number
  /** The reason for the order, in a sentence. */
  reason: string
  step: OrderStep
  /** Null: none was made, or none is known yet. */
  circuit: number | null
  ordered_at: string
  /** The end of the circuit's window; later while the feed needs it. */
  until: string
  /** The end of the probes; null: it never carried the feed. */
  up_at: string | null
  released_at: string | null
  ended_at: string | null
  /** From the order to the end of the probes. */
  setup_s: number | null
  /** The result, or the reason for a refusal, in a sentence. */
  outcome: string
  /** Bytes carried over the bytes that its rate allows in the reserved time; null: not ended. */
  used_share: number | null
  products: number | null
  /** Median latency on the routed path less that on the circuit; the outcome says which medians. Null: not known. */
  gained_ms: number | null
}

/** A page of orders, newest first. */
export interface CircuitOrderPage {
  orders: CircuitOrder[]
  /** `before` of the next page; null: there is none. */
  next: number | null
}

/** A state for people against that of the probes; `state` null gives it back to the probes. */
export interface CircuitOverride {
  /** Down: feeds leave it. Active: it is shown as active while probes call it degraded; feeds go by the probes. */
  state: 'active' | 'down' | null
  /** Why; required with a state. */
  reason?: string
  by?: string
}

/** Another network's provider of circuits, which is asked by NSI. */
export interface CircuitProvider {
  provider: string
  url: string
  provider_nsa: string
  requester_nsa: string
  dialect: Dialect
  /** Null, like the next two: a proxy on the hub's machine adds TLS. */
  certificate: string | null
  key: string | null
  authorities: string | null
  reply_to: string | null
  service_type: string
}

/** A provider, without its name. Files are read on the hub's machine when the provider is used. */
export interface CircuitProviderWanted {
  /** Of its Connection Service. */
  url: string
  provider_nsa: string
  /** The hub's own name, which the provider knows. */
  requester_nsa: string
  /** `capacity`: the standard's change of a rate; `p2ps`: SuPA behind PolyNSI, OSCARS; `none`: OpenNSA. */
  dialect?: Dialect
  /** The hub's certificate in PEM, as an absolute path; it belongs together with `key` and `authorities`. */
  certificate?: string | null
  key?: string | null
  /** The certificates in PEM that the provider's own is verified with. */
  authorities?: string | null
  /** The address for callbacks; null: the provider is asked for news instead. */
  reply_to?: string | null
  service_type?: string
}

/** All providers, by name. */
export interface CircuitProviders {
  providers: CircuitProvider[]
}

/** The rates in use through a circuit, on average of a step. */
export interface CircuitRate {
  /** The begin of the step. */
  at: string
  /** Of the busiest site, as the reservation is per site. */
  out_bps: number
  in_bps: number
}

/** The rates in use through a circuit since the hub started, in steps; steps without traffic are left out. */
export interface CircuitRates {
  circuit: number
  step_s: number
  /** The begin of the record. */
  since: string
  until: string
  steps: CircuitRate[]
}

/** The number of ends of a circuit: two, or several at once. */
export type CircuitShape = 'point-to-point' | 'multipoint'

/** Where a circuit is in its life; `downburst_circuits.lifecycle` has the table. */
export type CircuitState = 'requested' | 'held' | 'admitted' | 'waiting' | 'provisioning' | 'verifying' | 'active' | 'degraded' | 'down' | 'failed' | 'tearing-down' | 'ending' | 'cancelling' | 'ended' | 'cancelled' | 'expired'

/** A circuit with its history. */
export interface CircuitWhole {
  circuit: number
  /** As people see it, with an override. */
  state: CircuitState
  /** Why it is in this state, in a sentence. */
  reason: string
  /** By the probes alone; feeds use no circuit against it. */
  probed_state: CircuitState
  /** Active or down, as an administrator set it; null: it is as its probes say. */
  overridden: CircuitState | null
  override_reason: string | null
  override_by: string | null
  /** When it expires unless it is committed; null: it isn't held. */
  held_until: string | null
  shape: CircuitShape
  sites: string[]
  since: string | null
  created_at: string | null
  request_id: string
  /** The near one first: the hub's, or of two sites the first. */
  ends: End[]
  /** The links between them; empty: only the ports and their hosts are reserved. */
  path: CircuitHop[]
  rate_out_bps: number
  rate_in_bps: number
  begin: string
  /** Null: until it is cancelled. */
  end: string | null
  driver: CircuitDriver
  replication: Replication
  group: string | null
  cap: Cap
  /** What is sent into it at most, as a share of its rate. */
  shaped_share: number
  burst_bytes: number | null
  /** The record of the provider that is asked; null for other drivers. */
  provider: string | null
  description: string
  /** Under which somebody else made it. */
  ticket: string
  requested_by: string
  creation: CircuitCreation
  /** Links and switches that its path was to pass. */
  include: string[]
  /** Links and switches that its path was not to pass. */
  exclude: string[]
  path_order: PathOrder
  layer: 'ethernet-frame'
  /** By the site that gets least; null until it was measured. */
  measured_out_bps: number | null
  measured_in_bps: number | null
  measured_at: string | null
  used_out_bps: number
  used_in_bps: number
  measurements: Measurement[]
  events: CircuitEvent[]
}

/** The nearest value of a condition, below or above the tried one, at which the choice is another. */
export interface ConditionFlip {
  /** A member of the conditions. */
  condition: string
  below: boolean
  at: number
  transport: Transport
}

/** Conditions under which a transport is chosen. */
export interface Conditions {
  sites: number
  /** Egress of the hub that is free for this feed, as Ethernet-frame bits per second. */
  egress_bps: number
  objective_ms: number
  /** The longest set-up time of circuits on demand; null: no offer of them reaches a site. */
  setup_s: number | null
}

/** The credential of a receiver: its hash, never anything to log in with. */
export interface Credential {
  sha256: string
  site: string
  created_at: string
  peer: string
  expires_at: string | null
  revoked_at: string | null
  /** SHA-256 of the one that it takes the place of. */
  replaces: string | null
  replaced_at: string | null
  /** Since when somebody wants it replaced before its time. */
  asked_at: string | null
  /** From when on its receiver is asked for another one. */
  renews_at: string | null
}

/** How many credentials of a site were revoked. */
export interface CredentialsRevoked {
  site: string
  revoked: number
}

/** The current plan of a feed, and the order that it follows, if there is one. */
export interface CurrentPlan {
  feed: string
  version: number
  transport: Transport
  reason: string
  made_at: string
  pinned: boolean
  legs: Leg[]
  /** The slowest first. */
  groups: Group[]
  candidates: Candidate[]
  figures: Record<string, boolean | number | string | null>
  /** Null: not measured yet. */
  floor: Floor | null
  flip: boolean | number | string | null
  would_be: boolean | number | string | null
  products: number
  pin: Pin | null
}

/** A session's connections for products. */
export interface DataConnections {
  open: number
  planned: number
  reason: string
}

/** The facts about a dataset that catalogues show. */
export interface DatasetFacts {
  title: string
  description: string
  organization: string
  email: string
  website: string
  /** ISO 3166, two or three letters. */
  country: string
  keywords: string[]
  /** The time of the first data. */
  begin: string
  /** West, south, east and north, degrees; null: the whole world. */
  bounds?: number[] | null
  license_url?: string | null
}

/** One-way delays in microseconds, corrected by the offset of the clocks. */
export interface DelaySpread {
  min: number
  median: number
  p99: number
  max: number
}

/** A product's state for one site, with the reason and the next action. */
export interface Delivery {
  site: string
  state: DeliveryState
  /** Null where nothing keeps it: it is there, or on its way. */
  cause: Cause | null
  reason: string
  next_action: string
  receipt: Receipt | null
  /** Of the feed at the site, for the distribution latency. */
  objective_ms: number | null
  timing: Timing
  /** Why it took so long: the largest first, those without a time last. */
  factors: Factor[]
}

/** Where a product is for a site. */
export type DeliveryState = 'waiting' | 'sending' | 'repairing' | 'stored' | 'rejected' | 'expired' | 'dropped' | 'not-subscribed' | 'denied'

/** The form in which a provider takes a change of a reservation. */
export type Dialect = 'capacity' | 'p2ps' | 'none'

/** Seen from the near end. */
export type Direction = 'out' | 'in'

/** Product sizes of a feed and gaps between its products, from its log. */
export interface Distribution {
  feed: string
  since: string
  products: number
  bytes: number
  sizes: SizeBin[]
  silences: SilenceBin[]
  complete: boolean
}

/** A network under one administration. */
export interface Domain {
  name: string
  description: string
  /** Ports of circuits on machines of this network. */
  ports: string[]
}

/** A network under one administration. */
export interface DomainWanted {
  name: string
  description?: string
  /** Ports of circuits on machines of this network, which sets up what is there. */
  ports?: string[]
}

/** What makes two products of a feed the same one. */
export type DuplicateRule = 'id-and-content' | 'content-without-wmo-start' | 'id' | 'signature' | 'none'

/** What an acknowledged product survives: the end of the process, or a power cut (fsync per product). */
export type Durability = 'process' | 'power'

/** One end of a circuit. */
export interface End {
  port: string
  site: string | null
  /** The tags that were asked for; null: any that the port offers. */
  first_vlan: number | null
  last_vlan: number | null
  /** The tag it has; null: untagged, or not admitted yet. */
  vlan: number | null
  /** Inside the circuit, with its prefix length. */
  address: string | null
}

/** One end: a port by its name, or a site that has one port; tags, if not any that the port offers. */
export interface EndNew {
  first_vlan?: number | null
  last_vlan?: number | null
  port?: string
  site?: string | null
  /** With the prefix length; declared circuits only. */
  address?: string | null
}

/** One end of a test: a port by its name, or a site that has one port. */
export interface EndOfTest {
  port?: string
  site?: string | null
}

/** What a site says of itself; what is left out keeps its value. */
export interface EndpointChange {
  organisation?: string | null
  contact?: string | null
  place?: PlaceShape | null
  multicast_interface?: string | null
  circuit_attachment?: AttachmentShape | null
  access_rate_bps?: number | null
  ceiling_mbps_by_hour?: number[] | null
}

/** One part of a product's time at a site: from its stamps, or from the state of the path. */
export interface Factor {
  factor: FactorName
  /** Null where it is not known. Parts of the path count with their share of the product's time on the line. */
  ms: number | null
  /** Of the bytes for `repair`, of the reserved rate for `circuit`, of the time for `tcp`; null for others. */
  share: number | null
  sentence: string
}

/** The parts of a product's time; names are promises. */
export type FactorName = 'origin' | 'queue' | 'transport' | 'circuit' | 'tcp' | 'repair' | 'disk' | 'action' | 'clock'

/** A product that could not be fetched. */
export interface FailedProduct {
  data_id: string
  topic: string
  published_at: string
  received_at: string
  failed_at: string | null
  reason: string
}

/** The way in which a relay hands out the one copy of a leg. */
export type FanOut = 'group' | 'unicast'

/** Something that is wrong, and what to do about it. */
export interface Fault {
  at: string
  severity: Severity
  /** Of the alarm that is raised for it if it lasts; null for what raises none. */
  kind: AlarmKind | null
  /** Its number, if it goes on. */
  alarm: number | null
  sentence: string
  feed: string | null
  site: string | null
  /** What to do. */
  next: string | null
  silence: Silence | null
}

/** A named stream of products. */
export interface Feed {
  feed: string
  class: FeedClass
  retention_hours: number
  retention_bytes: number
  objective_ms: number
  duplicate_rule: DuplicateRule
  durability: Durability
  max_product_bytes: number
  /** The leg that serves sites by unicast. */
  unicast_leg: number | null
  created_at: string | null
  /** LDM's feed types of its products; null: LDMs neither bring nor get them. */
  ldm_feed_type: string | null
  /** Of these types, the products whose identifier matches; null: all. */
  ldm_pattern: string | null
  /** Products that can't be at a site this long after the hub stored them are dropped and counted, milliseconds;
      null: an ordinary feed. */
  deadline_ms: number | null
}

/** What a site lacks of one feed. */
export interface FeedBacklog {
  feed: string
  /** False: the site stands in another log than the hub's, so that it can't be counted. */
  known: boolean
  products: number
  bytes: number
  oldest_us: number | null
  lost_products: number
  lost_bytes: number
  counting: boolean
}

/** Properties of a feed; those left out keep their value (PATCH) or take the default (POST, PUT). */
export interface FeedChange {
  class?: FeedClass | null
  retention_hours?: number | null
  retention_bytes?: number | null
  objective_ms?: number | null
  duplicate_rule?: DuplicateRule | null
  durability?: Durability | null
  max_product_bytes?: number | null
  /** LDM's feed types of its products; null: LDMs neither bring nor get them. */
  ldm_feed_type?: string | null
  ldm_pattern?: string | null
  /** Products that can't be at a site this long after the hub stored them are dropped and counted, milliseconds;
      null: an ordinary feed. */
  deadline_ms?: number | null
}

/** Priority of a feed, highest first. */
export type FeedClass = 'warning' | 'observation' | 'grid' | 'bulk'

/** The latencies of a feed at all its sites over the last hour. */
export interface FeedLatency {
  distribution_ms: Figures
  end_to_end_ms: Figures
  history: MinuteLatency[]
}

/** A feed to make. */
export interface FeedNew {
  class?: FeedClass | null
  retention_hours?: number | null
  retention_bytes?: number | null
  objective_ms?: number | null
  duplicate_rule?: DuplicateRule | null
  durability?: Durability | null
  max_product_bytes?: number | null
  /** LDM's feed types of its products; null: LDMs neither bring nor get them. */
  ldm_feed_type?: string | null
  ldm_pattern?: string | null
  /** Products that can't be at a site this long after the hub stored them are dropped and counted, milliseconds;
      null: an ordinary feed. */
  deadline_ms?: number | null
  feed: string
}

/** The records of a feed with a deadline that the hub stored within one second, as one site reports them. */
export interface FeedSecond {
  site: string
  /** Its number since 1970. */
  second: number
  /** Its beginning by the hub's clock. */
  at: string
  /** In time at the site. */
  stored: number
  /** Not sent, as they could not be in time. */
  late_at_hub: number
  /** They came behind the deadline, and the site dropped them. */
  late_at_site: number
  /** They left the hub's log before the site got them, or their bytes did not match their digest. */
  lost: number
  /** Stored ones that came after one with a higher number (RFC 4737). */
  reordered: number
  /** Of the stored ones; null: none, or the clocks were not compared. */
  delay: RecordDelays | null
  /** Interarrival jitter at the end of the second (RFC 3550). */
  jitter_ms: number | null
}

/** A feed: what comes in, its plan, its latency. */
export interface FeedSeen {
  feed: string
  class: FeedClass
  products: number
  bytes: number
  rate_bps: number
  /** Product bits per second of each of the last seconds, oldest first. */
  rate_history: number[]
  mean_bps: number
  peak_1s_bps: number
  peak_60s_bps: number
  silent_share: number | null
  fan_out: number
  head: number
  plan: PlanSeen | null
  latency: FeedLatency
  objective_ms: number
}

/** What came into a feed. */
export interface FeedVolume {
  feed: string
  bytes: number
  products: number
  mean_bytes_per_hour: number
  max_bytes_per_hour: number
  share: number
  products_per_hour: number
}

/** What is known of some latencies; null where nothing is counted. */
export interface Figures {
  p50: number | null
  p95: number | null
  p99: number | null
  max: number | null
  count: number
  /** How many are negative: the clocks were wrong by more than that. */
  negative: number
  /** The largest error of the clocks' comparison; null if one clock took both stamps. */
  bound: number | null
  /** Of the median: negative medians are `clock`, those below twice the bound `not known`. */
  certainty: Certainty | null
}

/** The machines' own time, which is part of each predicted latency. */
export interface Floor {
  p50_ms: number | null
  p95_ms: number | null
  p99_ms: number | null
  hub_p50_ms: number | null
  slowest_site: string | null
  slowest_site_p50_ms: number | null
  deliveries: number
}

/** How an answer is written. */
export type Form = 'json' | 'csv'

/** A multicast leg of the plan, with its rates, and its latencies as predicted and as measured. */
export interface Group {
  leg: number
  /** Its pace in the plan, as Ethernet-frame bits per second. */
  rate_bps: number | null
  site_names: string[]
  predicted_p50_ms: number | null
  predicted_p99_ms: number | null
  /** Of its sites, under this plan, in the last hour; null: not measured yet. */
  measured_p50_ms: number | null
  measured_p99_ms: number | null
  /** The rate at which it was last sent: losses may have lowered it. Null: not reported yet. */
  paced_bps: number | null
  /** The pace by the losses of its sites; null: something else sets it. */
  line_bps: number | null
}

/** Every probe passes. */
export interface Health {
  status: string
  ledger: string
  /** By name `ok`, or what is wrong. */
  probes: Record<string, string>
}

/** The way of a notification through a source of this hub. */
export interface Heard {
  bridge: string
  heard_at: string
  /** The time at which the log had the product. */
  settled_at: string | null
}

/** Whether a site hears groups, as it was when it last joined one. */
export interface Hearing {
  state: 'heard' | 'not-heard' | 'too-slow' | 'not-tried' | 'not-allowed'
  feed: string | null
  at: string | null
  again_at: string | null
  reason: string
}

/** Of the heartbeats in a feed: when the newest that came out was made, and the oldest that did not. */
export interface Heartbeat {
  came_out: string | null
  waits_since: string | null
}

/** The latencies of a feed by site and step: the sites with the highest share of their objective first. */
export interface Heat {
  step_minutes: number
  /** The beginnings of the steps, oldest first; the last one may not have ended. */
  steps: string[]
  rows: HeatRow[]
  /** Sites beyond the limit. */
  others: number
}

/** A site in one step; the figures are null without a latency. A site that was down may have some. */
export interface HeatCell {
  state: CellState
  /** p99, relative to the objective at the site: 1 is the objective. */
  share: number | null
  p99_ms: number | null
  /** The deliveries behind the figure; p99 of fewer than 20 is their maximum. */
  products: number
}

/** A site over time. */
export interface HeatRow {
  site: string
  objective_ms: number
  /** One for each of `steps`. */
  cells: HeatCell[]
}

/** The distribution of latencies, with the figures of all products. */
export interface Histogram {
  bins: Bin[]
  figures: Figures
  /** Of the feed at the site, or of the feed; null for other kinds than `distribution`, which have none. */
  objective_ms: number | null
  /** How many products took longer than that, to within 2 % of the objective. */
  over_objective: number | null
}

/** A machine that circuits end at. */
export interface Host {
  name: string
  ports: string[]
  nic_bps: number
}

/** How a site's host reads the multicast group of a feed, since its receiver started. */
export interface HostReading {
  leg: number
  /** Datagrams that the kernel dropped, as the receive buffer had no room for them. */
  dropped: number
  /** The receive buffer that the receiver requests; the kernel grants and accounts the double. */
  asked_bytes: number
  granted_bytes: number
  /** What the leg's rate needs on a busy host, as the kernel accounts it. */
  needed_bytes: number
  /** `net.core.rmem_max` at the site; null: not known. */
  limit_bytes: number | null
  /** The requested real-time priority; null: none. */
  priority: number | null
  standing: PriorityStanding
  /** How often a reading thread lost its priority, as it ran for too long without a pause. */
  demotions: number
  /** Null: the feed's groups never lost packets in a steady stream, or the receiver does not report it. */
  line: LineReading | null
  /** The setting to change at the site; null: nothing is to be done. */
  advice: string | null
}

/** A machine that circuits end at; its ports share its network card. */
export interface HostWanted {
  name: string
  ports: string[]
  nic_bps: number
}

/** The hub itself. */
export interface HubState {
  name: string
  version: string
  started_at: string
  uptime_s: number
  node: NodeState
  probes: Record<string, string>
}

/** Product ids that match `pattern` and not `not_pattern`. */
export interface IdFilter {
  pattern: string
  not_pattern: string | null
}

/** Something that is wrong now. Sentences begin with a capital letter, but for names. */
export interface Incident {
  severity: Severity
  /** Of the alarm that is raised for it if it lasts; null for an incident that raises none. */
  kind: AlarmKind | null
  /** Its number, if one is open. */
  alarm: number | null
  title: string
  since: string
  /** Null: the title says all that is known. */
  cause: string | null
  feed: string | null
  site: string | null
  affected: Affected
  next: string | null
  /** The first one is the most likely. */
  actions: IncidentAction[]
  /** The silence that covers it: until when, and by whom. */
  silence: Silence | null
  /** True for an event of the last minutes that is not known to continue. */
  over: boolean
}

/** An action with its target; what it is not about is null. */
export interface IncidentAction {
  kind: ActionKind
  site: string | null
  feed: string | null
  circuit: number | null
}

/** A link to choose a password: what follows the page's address. */
export interface Invitation {
  fragment: string
  link_expires_at: string
}

/** A choice, its reason, and the figures of all transports, the chosen one first. */
export interface Judgement {
  transport: Transport
  sentence: string
  candidates: Candidate[]
}

/** Latency over time, oldest first; steps without products are left out. */
export interface LatencyHistory {
  step_minutes: number
  /** The range that was asked for; the end is not part of it. */
  from: string
  to: string
  /** Of the feed at the site, or of the feed; null for other kinds than `distribution`, which have none. */
  objective_ms: number | null
  points: LatencyPoint[]
}

/** Between which stamps a latency lies. */
export type LatencyKind = 'distribution' | 'end-to-end' | 'queueing' | 'action'

/** The latencies of one step. */
export interface LatencyPoint {
  at: string
  p50: number | null
  p95: number | null
  p99: number | null
  max: number | null
  count: number
  negative: number
  bound: number | null
  certainty: Certainty | null
}

/** Hosts that may push products of these feed types whose identifiers match. */
export interface LdmAccept {
  id: number
  feeds: string
  pattern: string
  host: string
  created_at: string | null
}

/** Hosts that may push products. */
export interface LdmAcceptNew {
  feeds: string
  pattern?: string
  host: string
}

/** A connected LDM, with the products sent and answered. */
export interface LdmPeer {
  /** Its name, if it has one. */
  peer: string | null
  address: string
  site: string | null
  /** `feedme`, `notifyme` or `hiya`; empty if it was told nothing. */
  what: string
  mode: string | null
  products: number
  bytes: number
  /** Products behind which it answered. */
  answered: number
  answered_us: number | null
  unacknowledged_bytes: number
  [name: string]: unknown
}

/** Where LDMs connect, and those that are connected. */
export interface LdmPeers {
  addresses: string[]
  peers: LdmPeer[]
}

/** An rtstats line: how late the products of one feed type were at a host in one hour, by its clock. */
export interface LdmReport {
  report: string
  at_us: number
  host: string
  feed: string
  path: string
  products: number
  bytes: number
  mean_latency_s: number
}

/** LDMs that are asked for the same products. */
export interface LdmSource {
  source: string
  /** Feed types, as an expression. */
  feeds: string
  /** `HOST[:PORT]`, the first one primary. */
  upstreams: string[]
  pattern: string
  max_age_s: number
  created_at: string | null
}

/** A source with the state of each of its upstreams. */
export interface LdmSourceListed {
  source: string
  /** Feed types, as an expression. */
  feeds: string
  /** `HOST[:PORT]`, the first one primary. */
  upstreams: string[]
  pattern: string
  max_age_s: number
  created_at: string | null
  state: LdmUpstreamState[]
  /** Whether each of its feed types belongs to a feed. */
  has_feeds: boolean
}

/** LDMs that are asked for the same products. */
export interface LdmSourceNew {
  source: string
  feeds: string
  pattern?: string
  upstreams: string[]
  max_age_s?: number
}

/** LDMs that are asked for the same products. */
export interface LdmSourceSeen {
  source: string
  feeds: string
  upstreams: LdmUpstreamSeen[]
}

/** How it stands with an LDM that is asked for products. */
export interface LdmUpstreamSeen {
  upstream: string
  connected: boolean
  mode: string
  since: string | null
  reason: string | null
}

/** How it stands with one upstream; members after `connected` are left out while the node has not told them. */
export interface LdmUpstreamState {
  upstream: string
  connected: boolean
  mode?: string | null
  reason?: string | null
  stored?: number | null
  bytes?: number | null
  duplicates?: number | null
  passed_over?: number | null
  dropped?: number | null
  [name: string]: unknown
}

/** A site's end that joins a multipoint circuit. */
export interface LeafNew {
  first_vlan?: number | null
  last_vlan?: number | null
  port?: string
  site?: string | null
  /** With the prefix length; declared circuits only. */
  address?: string | null
  by?: string
}

/** One delivery over one path to a set of sites, with what it sent.
    
    `group`, `port`, `rate_bps` and `relay` are left out of a leg of an earlier plan, of which only the counts are
    kept. */
export interface Leg {
  leg: number
  transport: Transport
  group?: string | null
  port?: number | null
  rate_bps?: number | null
  /** The relay that fans out the one copy to these sites; null: the hub's own network does. */
  relay?: string | null
  sites: number
  site_names: string[]
  circuits: LegCircuit[]
  products: number
  bytes: number
  egress_bytes: number
  repair_bytes: number
  control_bytes: number
  unicast_equivalent_bytes: number
}

/** The circuit that a leg uses to a site. */
export interface LegCircuit {
  site: string
  circuit: number
}

/** Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT). */
export interface LimitShape {
  feed: string
  pattern?: string
  not_pattern?: string | null
}

/** The part of the time for one limit, 0 to 1: `application`, `receive-window`, `receiver`, `send-buffer`,
    `network-loss`, `congestion-window` or `pacing`. */
export interface LimitShare {
  limit: string
  share: number
}

/** What the line of a site's host carried while a group lost packets, over about a second: its capacity. */
export interface LineReading {
  /** Everything that arrived from the hubs, in Ethernet-frame bits per second. */
  arrived_bps: number
  /** The rate at which the group was sent in that time. */
  offered_bps: number
  /** Packets of the group that were sent in that time. */
  packets: number
  /** Of these, the packets that did not arrive. */
  lost: number
  /** Measured stretches since the site's receiver started. */
  windows: number
}

/** A line between two ports. */
export interface Link {
  name: string
  a: string
  z: string
  az_bps: number
  za_bps: number
  tags: Tags | null
  cost: number
}

/** A one-time link, and what it asks for: name and password of the first administrator, or a new password. */
export interface LinkUse {
  link: string
  user?: string | null
  password?: string | null
}

/** A line between two ports: of the hub, of sites or of switches. */
export interface LinkWanted {
  name: string
  a: string
  z: string
  /** What circuits may reserve from `a` to `z`. */
  az_bps: number
  za_bps: number
  /** The tags that circuits may have; null: they aren't told apart by tags. */
  tags?: TagsWanted | null
  /** Its length for the shortest path, in any unit that all links share. */
  cost?: number
}

/** A login without its secret. */
export interface LoginShown {
  host: string
  /** Null: a token is used. */
  user: string | null
}

/** A login at a server of recommended data: a user with a password, or a bearer token. */
export interface LoginWanted {
  /** HOST, or HOST:PORT where the port is not the usual one of the address. */
  host: string
  user?: string | null
  password?: string | null
  token?: string | null
}

/** A product that a site will not get: rejected there, or expired before delivery. */
export interface LostDelivery {
  site: string
  feed: string
  epoch: string
  sequence: number
  state: string
  at: string
  product_id: string | null
  size: number | null
  stored_at: string | null
  kept: boolean
}

/** A page of lost deliveries, newest first. */
export interface LostPage {
  items: LostDelivery[]
  /** The cursor of the next page; null: there is none. */
  next: string | null
}

/** A window in which nobody is told of the site's alarms. */
export interface Maintenance {
  minutes: number
  reason?: string
  /** When; now, if left out. */
  begins?: string | null
}

/** A window in which elements take no new reservation; what they hold stays. */
export interface MaintenanceWanted {
  name: string
  /** Links, switches, hosts or ports of the hub or of sites. */
  of: string[]
  begin: string
  end: string
  reason?: string
}

/** A window in which elements take no new reservation. */
export interface MaintenanceWindow {
  name: string
  of: string[]
  begin: string
  end: string
  reason: string
}

/** Set-up times of the last circuits of an offer, from the order to the end of the probes. */
export interface MeasuredSetups {
  count: number
  median_s: number
  p90_s: number
}

/** What the last probe of one end found in one direction. */
export interface Measurement {
  site: string
  direction: Direction
  at: string
  /** What the circuit carries by measurement. */
  rate_bps: number
  reserved_bps: number
  loss_share: number
  round_trip_us: number | null
  /** Of a shortfall: policer, slow-segment, unprotected-segment, small-buffer, cut or unclear. */
  cause: string
  sentence: string
  remedy: string
  /** Whether feeds may ride on it. */
  enough: boolean
}

/** The latencies of one minute. */
export interface MinuteLatency {
  minute: string
  p50: number | null
  p99: number | null
  bound: number | null
  certainty: Certainty | null
}

/** What the node's log of a feed holds. */
export interface NodeFeed {
  feed: string
  epoch: string
  head: number
  first: number
  products: number
  bytes: number
  [name: string]: unknown
}

/** What the node says of a site's session. */
export interface NodeSession {
  site: string
  feeds: Record<string, unknown>[]
  [name: string]: unknown
}

/** Whether the node runs, and how often it was started again. */
export interface NodeState {
  running: boolean
  restarts: number
}

/** The hub's traffic and worst latency of the last hours. */
export interface NowHistory {
  points: TrafficPoint[]
  today: TrafficToday
  /** The rate that may leave the hub, by the setting `egress_capacity_bps`. */
  egress_capacity_bps: number
  /** False: the hub is still reading its history, and `worst_share` is null where it has not read it. */
  latency_read: boolean
}

/** The state and its incidents: the worst first, causes before consequences, then the newest. */
export interface NowIncidents {
  status: StatusSentence
  /** At most 100; the counts include the others. */
  incidents: Incident[]
}

/** What the latency of a feed at one site has to meet, in place of the feed's objective. */
export interface Objective {
  /** Feed and site, joined by a slash. */
  objective: string
  feed: string
  site: string
  objective_ms: number
  /** Share of deliveries that has to meet it; null: as the settings say. */
  quantile: number | null
  /** Over how long that is judged; null: as the settings say. */
  minutes: number | null
}

/** A latency that a share of deliveries has to meet over some minutes; what is left out is as the settings say. */
export interface ObjectiveWanted {
  objective_ms: number
  quantile?: number | null
  minutes?: number | null
}

/** A circuit to the site; `enough` is null until it was measured. */
export interface Offer {
  circuit: number
  state: CircuitState
  rate_bps: number
  measured_bps: number | null
  enough: boolean | null
}

/** The progress of an order. */
export type OrderStep = 'would-order' | 'ordered' | 'up' | 'releasing' | 'ended' | 'refused' | 'failed'

/** The outcomes of a feed's products at one site, as its receipts report them: of all that the hub stored since
    the site took the feed, each product has one. */
export interface Outcomes {
  site: string
  stored: number
  /** The site already had them. */
  duplicates: number
  /** Of a feed with a deadline: not sent, as they could not be in time. */
  late_at_hub: number
  /** Of a feed with a deadline: they came behind it, and the site dropped them. */
  late_at_site: number
  /** They left the hub's log before the site got them. */
  expired: number
  /** Their bytes did not match their digest three times. */
  rejected: number
}

/** Everything the page shows, which the event `overview` carries too. Null: not measured. */
export interface Overview {
  hub: HubState
  now: string
  faults: Fault[]
  status: StatusSentence
  /** The same faults for people, at most 100: with title, extent and actions, the longest of equals first. */
  incidents: Incident[]
  throughput: Throughput
  feeds: FeedSeen[]
  sites: SiteSeen[]
  circuits: Circuit[]
  upstreams: UpstreamSeen[]
  ldm_sources: LdmSourceSeen[]
}

/** A site's clock by the site's kernel, against true time and not against the hub's clock. */
export interface OwnClock {
  /** A daemon keeps it in step. */
  synchronised: boolean
  /** The program that disciplines it; null: the site sees none. */
  daemon: string | null
  /** The largest error; it grows without a daemon. */
  error_ms: number
  /** The error that the daemon expects. */
  estimated_error_ms: number
}

/** Whom to tell of this site's alarms; empty lists stand for all. Without both severities and kinds: no
    information. */
export interface OwnReceiver {
  receiver: string
  kind: 'mail' | 'webhook'
  address: string
  kinds?: AlarmKind[] | null
  feeds?: string[] | null
  severities?: Severity[] | null
}

/** The number of connections that equal a rate, by round trip, segment size and loss of the path. */
export interface ParallelConnections {
  sentence: string
  /** Null: loss does not limit a connection, or no rate is wanted. */
  connections: number | null
  /** The rate of one connection, by Mathis; for cubic the larger one of Mathis and RFC 9438. */
  one_bps: number | null
  /** The access rate of the site; without one, the present rate of its feeds. */
  target_bps: number | null
}

/** A message of which nothing is fetched. */
export interface PassedOverMessage {
  at: string
  broker: string
  topic: string
  verdict: string
  sentence: string
}

/** The own password. */
export interface PasswordChange {
  old: string
  new: string
}

/** The way to a site: measured, tested and reserved. */
export interface Path {
  /** The share of segments that were sent again of late. */
  loss: number | null
  rate_bps: number | null
  /** There was nothing more to send. */
  rate_is_lower_bound: boolean | null
  congestion_control: string | null
  path_mtu_bytes: number | null
  multicast: Hearing
  circuits: Offer[]
  /** Null: no profile has the site's address, or it was never connected. */
  tcp_profile: AppliedProfile | null
  site: string
  seen_at: string | null
  round_trip_ms: number | null
  clock_bound_ms: number | null
  access_rate_bps: number | null
  /** Null without enough recent measurements of the path, or while the hub's own pace may have limited them. */
  forecast: RateForecast | null
  /** Null while round trip, loss or congestion control are not known. */
  parallel: ParallelConnections | null
  /** Null: the scheduler never chose one, so the site connects as its administrator wants. */
  way: SiteWay | null
}

/** What was measured of the way to a site beside round trip and clock; null is what nobody has measured yet. */
export interface PathFacts {
  /** The share of segments that were sent again of late. */
  loss: number | null
  rate_bps: number | null
  /** There was nothing more to send. */
  rate_is_lower_bound: boolean | null
  congestion_control: string | null
  path_mtu_bytes: number | null
  multicast: Hearing
  circuits: Offer[]
  /** Null: no profile has the site's address, or it was never connected. */
  tcp_profile: AppliedProfile | null
}

/** The figure of a result. */
export interface PathFigure {
  /** The median of delays, the mean of round trips or of a rate. */
  value: number
  unit: Unit
  /** The most that the figure is wrong, in its unit; null: not known. */
  error: number | null
  lost_share: number | null
  more: Record<string, number>
  /** A sentence where the figure is not to be taken as it stands. */
  note: string
}

/** The latency of a feed to a site by a transport. */
export interface PathLatency {
  feed: string
  site: string
  transport: Transport
  kind: LatencyKind
  p50: number | null
  p95: number | null
  p99: number | null
  max: number | null
  count: number
  negative: number
  bound: number | null
  certainty: Certainty | null
}

/** One result of a test point. */
export interface PathMeasurement {
  number: number
  point: string
  /** The start of the run. */
  at: string
  /** The type of the test by pScheduler's names: latency, latencybg, rtt, throughput. */
  kind: string
  /** The host from which packets went; empty: the result does not name it. */
  source: string
  destination: string
  source_site: string | null
  destination_site: string | null
  /** The name of the run at the test point. */
  run: string
  figure: PathFigure | null
  /** The reason for which there is no figure; empty if there is one. */
  refused: string
}

/** The measure of paths; of equal ones, the one with fewer hops comes first. */
export type PathOrder = 'shortest' | 'fewest-hops' | 'widest'

/** A subscription that is tried on what came. */
export interface PatternTest {
  pattern?: string
  not_pattern?: string | null
  hours?: number
}

/** Effect of a pattern on the last hours: counts, and the newest ids that match and do not. */
export interface PatternTested {
  feed: string
  since: string
  products: number
  matched: number
  matched_bytes: number
  matched_ids: string[]
  other_ids: string[]
  complete: boolean
}

/** An operator's order to use one transport for a feed. */
export interface Pin {
  feed: string
  transport: Transport
  by: string
  at: string
}

/** A transport to use whatever the scheduler thinks. */
export interface PinNew {
  transport: Transport
  /** Who is named as the one who asked; whoever asks, if left out. */
  by?: string | null
}

/** Where a site is. */
export interface Place {
  text: string
  latitude: number | null
  longitude: number | null
}

/** Where a site is. */
export interface PlaceShape {
  text?: string
  latitude?: number | null
  longitude?: number | null
}

/** The scheduler's versioned decision for a feed, with the figures and the sentence that explain it. */
export interface Plan {
  feed: string
  version: number
  transport: Transport
  reason: string
  made_at: string
  pinned: boolean
  legs: Leg[]
  /** The slowest first. */
  groups: Group[]
  candidates: Candidate[]
  figures: Record<string, boolean | number | string | null>
  /** Null: not measured yet. */
  floor: Floor | null
  flip: boolean | number | string | null
  would_be: boolean | number | string | null
  products: number
}

/** The current plan of a feed. */
export interface PlanSeen {
  version: number
  transport: Transport
  reason: string
  /** The deciding figure of the reason, for a line of a list. */
  clause: string
  pinned: boolean
  legs: Leg[]
  /** The slowest first. */
  groups: Group[]
  candidates: Candidate[]
  figures: Record<string, boolean | number | string | null>
  floor: Floor | null
  flip: string | null
  would_be: string | null
  since: string
}

/** Where circuits end: a port of the hub's host or of a site's, and what of it may be reserved. */
export interface Port {
  port: string
  /** What circuits may reserve of it, in each direction. */
  rate_bps: number
  /** Whose port it is; null: this hub's. */
  site: string | null
  /** Its name on the host. */
  interface: string
  /** The address on it between which the linux driver lays its tunnels. */
  underlay: string
  /** Its name in the network's topology, if it has one. */
  stp: string
  /** The tags that circuits may have there; null: circuits are untagged. */
  first_vlan: number | null
  last_vlan: number | null
  /** How fast the port itself is, in each direction; null: nobody said. */
  port_rate_bps: number | null
  /** The hub's sender on whose host it is; null: the hub's own node, or it is a site's. */
  sender: string | null
  created_at: string | null
  layer: 'ethernet-frame'
}

/** Properties of a port; those left out keep their value (PATCH) or take the default (POST). */
export interface PortChange {
  first_vlan?: number | null
  last_vlan?: number | null
  /** What circuits may reserve of it, each way. */
  rate_bps?: number | null
  /** How fast the port itself is, if that is known; no more than this can be reserved. */
  port_rate_bps?: number | null
  interface?: string | null
  underlay?: string | null
  stp?: string | null
  /** The hub's sender on whose host the port is; null: the hub's own node. */
  sender?: string | null
}

/** A port to make. */
export interface PortNew {
  first_vlan?: number | null
  last_vlan?: number | null
  rate_bps: number
  /** How fast the port itself is, if that is known; no more than this can be reserved. */
  port_rate_bps?: number | null
  interface?: string | null
  underlay?: string | null
  stp?: string | null
  /** The hub's sender on whose host the port is; null: the hub's own node. */
  sender?: string | null
  port: string
  site?: string | null
  layer?: 'ethernet-frame'
}

/** The priority of the thread that reads a group; names are promises. */
export type PriorityStanding = 'normal' | 'real-time' | 'lost' | 'refused'

/** A probe with its outcome. */
export interface Probe {
  id: number
  site: string
  kind: ProbeKind
  direction: Direction
  /** Of `stacks` one: the limit of the rate, and the duration of all trials. */
  steps: ProbeStep[]
  packet_bytes: number
  patience_s: number
  requested_by: string
  transport: ProbeTransport
  /** The requested one of a TCP stream; null: the default of the sender's kernel. */
  congestion: string | null
  /** Of `stacks` alone. */
  trials: ProbeTrial[]
  relay: string | null
  state: ProbeState
  /** Of its wait, its refusal or its end. */
  reason: string
  requested_at: string
  started_at: string | null
  ended_at: string | null
  /** A soak may have several. */
  attempts: number
  schedule: number | null
  /** The state of the path at the start: software, plans, load, way, round trip, clock, reserved ports. */
  circumstances: Record<string, unknown>
  gaps: ProbeGap[]
  result: ProbeResult | null
}

/** One side's ceiling. */
export interface ProbeCeiling {
  side: CeilingSide
  rate_bps: number | null
  bytes_per_day: number | null
  set_by: string
  set_at: string | null
}

/** A ceiling of a site's probes; null, or left out: none of that kind. */
export interface ProbeCeilingWanted {
  /** 0 forbids probes. */
  rate_bps?: number | null
  bytes_per_day?: number | null
}

/** All ceilings of a site's probes: each holds. */
export interface ProbeCeilings {
  site: string
  ceilings: ProbeCeiling[]
  /** Holds where neither side sets another. */
  default_bytes_per_day: number
  /** By the probes that started today, in UTC. */
  used_bytes: number
}

/** The delay after a loss, above the least delay. */
export interface ProbeExcess {
  at_us: number
  lost: number
  excess_us: number
  /** Until the excess is below 1 ms; null: it never was. */
  recovery_us: number | null
  /** The highest rate of arrivals from the loss to the recovery; null over UDP. */
  peak_bps: number | null
  /** Frames that waited when the excess was largest; null over UDP. */
  backlog_bytes: number | null
  /** The recovery time by the backlog and the rate to spare; null: there is none to spare, or UDP. */
  predicted_us: number | null
}

/** One flow of a trial, as measured. */
export interface ProbeFlow {
  congestion: string
  /** True: in the opposite direction of the probe. */
  reverse: boolean
  /** Payload that the receiver counted. */
  goodput_bps: number
  /** Segments, by the sender's kernel; null: it does not report them. */
  retransmits: number | null
  round_trip_us: ProbeRoundTrip
}

/** An interruption of a soak. */
export interface ProbeGap {
  since: string
  until: string | null
  reason: string
}

/** The measurements that a probe makes. */
export type ProbeKind = 'knee' | 'cbr' | 'soak' | 'stacks'

/** A probe to run as soon as its rate is free. */
export interface ProbeNew {
  site: string
  kind: ProbeKind
  /** `out`: from the hub, or the relay, to the site. */
  direction?: Direction
  /** The relay by which the site's session comes: the probe runs between both; left out: between hub and site. */
  relay?: string | null
  /** The rate, the highest of a sweep, or the limit of `stacks` in each direction. Left out of a sweep or `stacks`:
      the access rate, or a guess by what is known. */
  rate_bps?: number | null
  /** The rates of a sweep, in equal ratios from a tenth of the highest one to it. */
  steps?: number
  /** Of each step of a sweep (1 if left out), of each trial of `stacks` (10), or of the whole probe (10 for `cbr`,
      3600 for `soak`). */
  seconds?: number | null
  /** Of `cbr` and `soak`; a sweep uses UDP, and `stacks` TCP. */
  transport?: ProbeTransport
  /** The congestion control of `cbr` or `soak` over TCP; left out: the default of the sender's kernel. */
  congestion?: string | null
  /** The congestion controls that `stacks` compares: each alone, and each pair. Left out: cubic, bbr and reno. */
  stacks?: string[] | null
  /** Repeats each trial of `stacks` against a flow of the first control in the opposite direction. */
  reverse_traffic?: boolean
  /** The payload of a datagram, or the length of a record of a TCP stream. */
  packet_bytes?: number
  /** The longest wait for free rate. */
  patience_s?: number
}

/** All that a probe measured. */
export interface ProbeResult {
  steps: ProbeStepResult[]
  /** The largest delay of the sender behind its own schedule. */
  sender_lag_us: number
  /** The highest rate without loss; null: none was found, or this was no sweep. */
  knee_bps: number | null
  knee_reason: string | null
  /** Runs of lost packets. */
  losses: number
  excess: ProbeExcess[] | null
  /** A soak's coefficient of variation of the rate from second to second. */
  variation: number | null
  /** The delays are this near the truth; null: not known. */
  delay_bound_us: number | null
  /** The congestion control that the sender's kernel used; null over UDP, and of `stacks`. */
  congestion: string | null
  /** Segments that the sender's kernel sent again; null over UDP, and of `stacks`. */
  retransmits: number | null
  /** Of `stacks` alone. */
  trials: ProbeTrialResult[] | null
}

/** Round trips of a flow in microseconds, by its sender's kernel; null: it does not report them. */
export interface ProbeRoundTrip {
  min: number | null
  mean: number | null
}

/** A probe that repeats. */
export interface ProbeSchedule {
  id: number
  site: string
  kind: ProbeKind
  direction: Direction
  /** Of `stacks` one: the limit of the rate, and the duration of all trials. */
  steps: ProbeStep[]
  packet_bytes: number
  patience_s: number
  requested_by: string
  transport: ProbeTransport
  /** The requested one of a TCP stream; null: the default of the sender's kernel. */
  congestion: string | null
  /** Of `stacks` alone. */
  trials: ProbeTrial[]
  relay: string | null
  every_h: number
  first_hour: number
  end_hour: number
  next_at: string
  created_at: string | null
}

/** A probe that repeats. */
export interface ProbeScheduleNew {
  site: string
  kind: ProbeKind
  /** `out`: from the hub, or the relay, to the site. */
  direction?: Direction
  /** The relay by which the site's session comes: the probe runs between both; left out: between hub and site. */
  relay?: string | null
  /** The rate, the highest of a sweep, or the limit of `stacks` in each direction. Left out of a sweep or `stacks`:
      the access rate, or a guess by what is known. */
  rate_bps?: number | null
  /** The rates of a sweep, in equal ratios from a tenth of the highest one to it. */
  steps?: number
  /** Of each step of a sweep (1 if left out), of each trial of `stacks` (10), or of the whole probe (10 for `cbr`,
      3600 for `soak`). */
  seconds?: number | null
  /** Of `cbr` and `soak`; a sweep uses UDP, and `stacks` TCP. */
  transport?: ProbeTransport
  /** The congestion control of `cbr` or `soak` over TCP; left out: the default of the sender's kernel. */
  congestion?: string | null
  /** The congestion controls that `stacks` compares: each alone, and each pair. Left out: cubic, bbr and reno. */
  stacks?: string[] | null
  /** Repeats each trial of `stacks` against a flow of the first control in the opposite direction. */
  reverse_traffic?: boolean
  /** The payload of a datagram, or the length of a record of a TCP stream. */
  packet_bytes?: number
  /** The longest wait for free rate. */
  patience_s?: number
  every_h?: number
  /** It begins in hours of the day, in UTC, from this one to before `end_hour`; the window may pass midnight. */
  first_hour?: number
  end_hour?: number
}

/** A second of a probe at one rate. */
export interface ProbeSecond {
  second: number
  sent: number
  received: number
  lost: number
  reordered: number
  duplicated: number
  bytes: number
  delay_us: DelaySpread | null
  jitter_us: number | null
  delay_bound_us: number | null
  receiver_dropped: number
}

/** The states of a probe. */
export type ProbeState = 'waiting' | 'running' | 'done' | 'refused' | 'stopped' | 'failed'

/** A rate and its duration. */
export interface ProbeStep {
  rate_bps: number
  duration_ms: number
}

/** One rate of a probe, as measured. */
export interface ProbeStepResult {
  /** As asked for. */
  rate_bps: number
  sent_bps: number
  received_bps: number
  sent: number
  received: number
  lost: number
  /** The share of packets that the path lost. */
  loss: number
  /** Packets that the receiver's own host had no room for; they are no loss of the path. */
  receiver_dropped: number
  reordered: number
  duplicated: number
  elapsed_us: number
  /** Null: the offset of the clocks is not known, or several attempts are summed up. */
  delay_us: DelaySpread | null
  jitter_us: number | null
}

/** The protocol that carries the packets of a probe. */
export type ProbeTransport = 'udp' | 'tcp'

/** Flows that send at the same time, each named by its congestion control. */
export interface ProbeTrial {
  /** In the probe's direction. */
  flows: string[]
  /** In the opposite one. */
  reverse: string[]
  duration_ms: number
}

/** One trial, as measured. */
export interface ProbeTrialResult {
  duration_ms: number
  /** The reason why it did not run; null: it ran. */
  reason: string | null
  /** Jain's index of the flows in the probe's direction, from 1/n to 1; null: fewer than two. */
  fairness: number | null
  /** True: the probe's own limit was the bottleneck, and not the path. */
  limited: boolean
  flows: ProbeFlow[]
  /** Of each flow, the part of the goodput of its direction; null where nothing arrived. */
  shares: (number | null)[]
}

/** A product as a feed's log describes it. */
export interface ProductListed {
  feed: string
  sequence: number
  product_id: string
  origin: string
  created_at: string
  stored_at: string
  digest: string
  /** Whether the log still has the bytes; the description outlives them. */
  kept: boolean
  size: number
}

/** A page of products, newest first. */
export interface ProductPage {
  items: ProductListed[]
  /** The cursor of the next page; null: there is none. */
  next: string | null
}

/** A product with its delivery to each site. */
export interface ProductTraced {
  feed: string
  epoch: string
  sequence: number
  product_id: string
  origin: string
  created_at: string
  stored_at: string
  size: number
  digest: string
  class: string
  kept: boolean
  bridged: Bridged
  /** How many sites are in each state. */
  states: Record<string, number>
  deliveries: Delivery[]
}

/** The way in which a profile gets its values. */
export type ProfileMode = 'static' | 'trial' | 'learn'

/** The part of a profile that applies to the connections of a session. */
export type ProfileState = 'static' | 'base' | 'canary' | 'learnt'

/** A publisher with the state of its broker and the number of its products. */
export interface Publisher {
  publisher: string
  feed: string
  centre: string
  topic: string
  metadata_id: string
  broker: BrokerState
  base_url: string
  pattern: string
  media_type: string
  by_heading: boolean
  republishes: boolean
  enabled: boolean
  /** The title of its record of discovery; null: Global Brokers drop notifications without one. */
  dataset: string | null
  created_at: string | null
  products: PublisherProducts
}

/** Properties of a publisher; those left out keep their value. */
export interface PublisherChange {
  feed?: string | null
  centre?: string | null
  /** Below `origin/a/wis2/CENTRE/data/`, such as `core/weather/surface-based-observations/synop`. */
  topic?: string | null
  metadata_id?: string | null
  broker?: BrokerWanted | null
  base_url?: string | null
  pattern?: string | null
  media_type?: string | null
  by_heading?: boolean | null
  republishes?: boolean | null
  enabled?: boolean | null
  /** Null: its record is published elsewhere. */
  dataset?: DatasetFacts | null
}

/** The number of a publisher's products by step, in the last two days. */
export interface PublisherProducts {
  /** The broker has not acknowledged them. */
  waiting: number
  announced: number
  refused: number
  expired: number
  /** The sequence of the last product of the feed that was looked at; null: the publisher has not begun. */
  looked_at: number | null
  /** Products of the feed that were not looked at yet. */
  behind: number
  /** The broker's last refusal; empty after an announcement. */
  refusal: string
}

/** Products of a feed that are to be announced on a topic of WIS2. */
export interface PublisherWanted {
  publisher: string
  feed: string
  /** The centre-id under which this hub publishes; `-test` at its end is for tests. */
  centre: string
  /** Below `origin/a/wis2/CENTRE/data/`, such as `core/weather/surface-based-observations/synop`. */
  topic: string
  /** Of the dataset's record, such as `urn:wmo:md:us-unidata:synop`. */
  metadata_id: string
  /** The hub's own broker, from which Global Brokers take notifications. */
  broker: BrokerWanted
  /** The address under which others reach this hub, such as `https://hub.example`. */
  base_url: string
  /** Products whose ids match are announced. */
  pattern?: string
  media_type?: string
  /** A gateway of the GTS: topics end with the headings of bulletins. */
  by_heading?: boolean
  /** Products that came by WIS2 are announced too, with their centre as the producer. */
  republishes?: boolean
  /** Look at the preview first. */
  enabled?: boolean
  /** For the record of discovery; null: it is published elsewhere. */
  dataset?: DatasetFacts | null
}

/** The rates that are free throughout a window, on the path with the most from the hub. */
export interface RateAnswer {
  sentence: string
  rate_out_bps: number
  rate_in_bps: number
  hub_port: string
  port: string
  path: CircuitHop[]
}

/** How much is free throughout a window? */
export interface RateAsked {
  /** A site that has one port, or a port of a site. */
  to: string
  /** The hub's port; left out: its only one. */
  port?: string
  order?: PathOrder
  /** Links and switches that the path must pass. */
  include?: string[]
  /** Links and switches that it must not pass. */
  exclude?: string[]
  begin?: string
  /** RFC 3339, or +2h, counted from the begin. */
  end: string
}

/** The rate to expect of the connections to a site, from measured rates. */
export interface RateForecast {
  rate_bps: number
  /** The mean error of the last forecasts, as a share of the rate. */
  error_share: number
  samples: number
  /** The predictor with the least error of late. */
  best: 'mean' | 'median' | 'ewma' | 'autoregression' | 'nearest'
}

/** What a site said about a product. Stamps of the site are on the site's clock. */
export interface Receipt {
  outcome: string
  lane: string
  transport: Transport
  leg: number
  repaired: boolean
  /** On the hub's clock. */
  first_byte_sent_at: string | null
  last_byte_at: string | null
  site_stored_at: string | null
  action_done_at: string | null
  /** Site's clock minus the hub's; null while they were not compared. */
  clock_offset_us: number | null
  clock_bound_us: number | null
}

/** Whom to tell, and of what; empty stands for all. */
export interface Receiver {
  receiver: string
  kind: ReceiverKind
  /** A URL, or an address for mail; it may hold a secret. */
  address: string
  kinds: AlarmKind[]
  feeds: string[]
  sites: string[]
  severities: Severity[]
  /** The site whose administrator made it: it hears of that site alone. */
  owner: string | null
}

/** How a receiver is told. */
export type ReceiverKind = 'webhook' | 'alertmanager' | 'mail'

/** Whom to tell; empty lists stand for all. Without severities and kinds: of all but information. */
export interface ReceiverNew {
  receiver: string
  kind: ReceiverKind
  address: string
  kinds?: AlarmKind[] | null
  feeds?: string[] | null
  sites?: string[] | null
  severities?: Severity[] | null
}

/** Delays of records from the hub's log to their last byte at the site, corrected by the offset of the clocks. */
export interface RecordDelays {
  min_ms: number
  median_ms: number
  p99_ms: number
  max_ms: number
  /** The bound of that offset. */
  bound_ms: number | null
  /** Records with a negative delay: the clocks are further apart than was measured. */
  negative: number
}

/** Why not, for the asker to read. */
export interface Refusal {
  answer: string
}

/** A relay with its state and its newest report. */
export interface Relay {
  relay: string
  address: string | null
  fan_out: FanOut | null
  sites: string[]
  feeds: string[]
  created_at: string | null
  state: SiteState
  /** The state for people, with its time and reason. */
  state_words: string
  connected: boolean
  /** The time of the newest report; null: none since the hub started. */
  reported_at: string | null
  /** Tunnels refused since the relay started. */
  refused: number | null
  /** None while the relay is away. */
  tunnels: RelayTunnel[]
  legs: RelayLeg[]
}

/** A leg that the relay fans out, counted since it opened. */
export interface RelayLeg {
  leg: number
  datagrams: number
  bytes: number
  /** Datagrams that the relay could not send in time; sites request them. */
  dropped: number
}

/** A tunnel in the log of its relay: at its end, or at an hour of its life. */
export interface RelayRecord {
  number: number
  at: string
  tunnel: RelayTunnel
}

/** One TCP connection of a tunnel, by the relay's kernel; null: not measured yet. */
export interface RelaySegment {
  round_trip_us: number | null
  /** Segments sent again, per million. */
  loss_ppm: number | null
  congestion: string
  rate_bps: number
}

/** A connection of a site that the relay carries in two segments. */
export interface RelayTunnel {
  /** Null: the hub knows no session with this address. */
  site: string | null
  /** IP:PORT of the peer, as the relay sees it. */
  site_side: string
  /** IP:PORT of the relay, as the hub sees it. */
  hub_side: string
  target: string
  seconds: number
  bytes_from_hub: number
  bytes_from_site: number
  rate_from_hub_bps: number
  /** Between relay and site. */
  near: RelaySegment
  /** Between relay and hub, or the next relay. */
  onward: RelaySegment
  ended: boolean
}

/** A relay, without its name. */
export interface RelayWanted {
  /** HOST:PORT at which its sites reach it; null, or left out: it splices no connections. */
  address?: string | null
  /** It takes one copy of a leg, and sends it to a multicast group of its network (`group`) or to each site by UDP
      (`unicast`); null, or left out: it takes none. */
  fan_out?: FanOut | null
  /** The sites behind it; another relay among them reaches the hub through this one. */
  sites?: string[]
  /** The feeds granted to it; `*` stands for all. */
  feeds?: string[]
}

/** How many credentials of a site will be replaced, and whether its receiver can do so by itself. */
export interface ReplacementAsked {
  site: string
  asked: number
  connected: boolean
  /** Null while the site is not connected. */
  renews: boolean | null
}

/** Who makes the copies of a multipoint circuit. */
export type Replication = 'head-end' | 'underlay'

/** A request for access; the secret gives access to its state, and is shown only here. */
export interface RequestMade {
  number: number
  secret: string
  fragment: string
}

/** A site that asks to be served, with its endpoint. */
export interface RequestNew {
  site: string
  organisation: string
  contact: string
  place?: string
  multicast_interface?: string
  access_rate_bps?: number | null
  feeds?: string[] | null
  note?: string
}

/** What an asker was told when asking. */
export interface RequestSecret {
  secret: string
}

/** What became of a request for access. */
export type RequestState = 'waiting' | 'approved' | 'refused'

/** What became of a request; once approved, with a link to choose a password, until one is chosen. */
export interface RequestStateShown {
  number: number
  site: string
  state: RequestState
  answer: string
  asked_at: string | null
  user: string | null
  fragment: string | null
}

/** Products of a feed that were stored at the hub in a time range and go to one site again. */
export interface Resend {
  pattern: string
  not_pattern: string | null
  from: string
  to: string
  id: number
  site: string
  feed: string
  kind: ResendKind
  /** What the site subscribed before a backfill; products that match one of these are left out. */
  had: IdFilter[]
  state: ResendState
  requested_at: string | null
  requested_by: string
  ended_at: string | null
  /** Delivered under this resend so far. */
  products: number
  bytes: number
  /** Matched, but the hub has only the memory of them. */
  expired: number
}

/** Why stored products travel again. */
export type ResendKind = 'resend' | 'backfill'

/** Products stored at the hub from `from` to `to` whose id matches, to one site again. */
export interface ResendNew {
  site: string
  feed: string
  /** RFC 3339 with an offset, or how long ago: `2h`. */
  from: string
  to?: string
  pattern?: string
  not_pattern?: string | null
  /** Who is named as the one who asked; whoever asks, if left out. */
  by?: string | null
}

/** Where a resend stands. */
export type ResendState = 'waiting' | 'done' | 'cancelled'

/** The kind of a resource of the calendar. */
export type ResourceKind = 'link' | 'host' | 'port'

/** The number of products that are tried once more. */
export interface Retried {
  products: number
}

/** What a person or program is to the hub. */
export type Role = 'viewer' | 'site' | 'operator' | 'admin'

/** Products of a feed that siblings gave to a site. */
export interface SavedOfFeed {
  feed: string
  products: number
  /** The hub did not have to send them. */
  bytes: number
}

/** What a route asks of its caller. */
export type Scope = 'latency' | 'read' | 'details' | 'metrics' | 'ingest' | 'own' | 'operate' | 'admin'

/** A session; its secret is told to programs that ask for it. */
export interface SessionBegun {
  user: string | null
  role: Role | null
  /** The one site of a user with the role `site`. */
  site: string | null
  scopes: Scope[]
  expires_at: string
  /** Left out for browsers, which get a cookie. */
  session?: string | null
}

/** The session of a connected site. */
export interface SessionShown {
  data_connections: DataConnections | null
  /** Null: not connected, or a receiver that does not report it. */
  clock: OwnClock | null
  /** By feed, how the site's host reads its group: of feeds that came by multicast in this session. */
  readings: Record<string, HostReading>
}

/** How soon somebody has to do something; the worst first. */
export type Severity = 'critical' | 'warning' | 'information'

/** The exchange of a site with its siblings. */
export interface SiblingExchange {
  /** Null: the address of its session, and the port that its receiver opened. */
  address: string | null
  upload_bytes_per_second: number
  upload_bytes_per_day: number
  set_by: string
  set_at: string | null
}

/** The exchange of a site. Its siblings learn its address, and it learns theirs. */
export interface SiblingExchangeWanted {
  /** HOST:PORT at which siblings reach it; null, or left out: the address of its session, and the port that its
      receiver opened. */
  address?: string | null
  /** The most that it gives to all siblings together. */
  upload_bytes_per_second?: number
  /** The most from midnight to midnight, in UTC. */
  upload_bytes_per_day?: number
}

/** The part of a site in the repair between sites. */
export interface SiblingSite {
  site: string
  /** Null: it is switched off. */
  exchange: SiblingExchange | null
  saved: SavedOfFeed[]
  saved_bytes: number
}

/** A user's name and password. */
export interface SignIn {
  user: string
  password: string
  /** Programs get the session's secret in the answer; browsers get it as a cookie that pages can't read. */
  bearer?: boolean
}

/** A link that signs a browser in once: what follows the page's address. */
export interface SignInLink {
  fragment: string
  expires_at: string
}

/** The provider of OpenID Connect at which users of a hub may sign in. */
export interface SignInProvider {
  name: string
  /** Why signing in there fails at present, in one sentence; null: it answers. */
  problem: string | null
}

/** The ways to sign in to a hub: by password, and by its provider if it has one. */
export interface SignInWays {
  provider: SignInProvider | null
  /** Sentences by the codes with which a sign-in at the provider leads back: `#sign-in-refused=CODE`. */
  refusals: Record<string, string>
}

/** The end of a session. */
export interface SignedOut {
  /** The provider's page on which the user signs out there as well; null: there is none. */
  continue_at: string | null
}

/** Alarms that nobody is told of until a moment; null stands for all. */
export interface Silence {
  number: number
  until: string
  by: string
  reason: string
  kind: AlarmKind | null
  feed: string | null
  site: string | null
  /** Null: it began when it was made. */
  begins: string | null
  /** Of the only alarm that it is about, however often that begins and ends. */
  alarm_key: string | null
}

/** How many gaps between products last at most so long, and longer than half of it. */
export interface SilenceBin {
  up_to_ms: number
  times: number
}

/** Alarms that nobody is told of for a while: a single one that goes on, or those of a kind, feed and site. */
export interface SilenceNew {
  minutes: number
  reason?: string
  /** Number of an alarm that goes on: it alone, whenever it begins again. Kind, feed and site are its own then. */
  alarm?: number | null
  kind?: AlarmKind | null
  feed?: string | null
  site?: string | null
  /** When; now, if left out. */
  begins?: string | null
}

/** An organisation's receiving host. */
export interface Site {
  site: string
  organisation: string
  contact: string
  place: Place
  /** Interface or address at the site that joins groups; empty: the site's own choice. */
  multicast_interface: string
  circuit_attachment: Attachment | null
  access_rate_bps: number | null
  /** What the site allows the hub, for each hour of the day in UTC; empty: no ceiling. */
  ceiling_mbps_by_hour: number[]
  /** Feeds the site may take; `*` stands for all. */
  allow: string[]
  limits: SiteLimit[]
  /** Whether the site may be served by multicast. */
  multicast: boolean
  active: boolean
  /** How many connections for products it gets beside its first, 0 to 16; null: as many as help. */
  data_connections: number | null
  created_at: string | null
  /** It keeps its LDM: matches the host's name or address. */
  ldm_host: string | null
}

/** Properties of a site; those left out keep their value (PATCH) or take the default (POST). */
export interface SiteChange {
  organisation?: string | null
  contact?: string | null
  place?: PlaceShape | null
  multicast_interface?: string | null
  circuit_attachment?: AttachmentShape | null
  access_rate_bps?: number | null
  ceiling_mbps_by_hour?: number[] | null
  allow?: string[] | null
  /** Of these feeds it may take this alone; several to one feed add up, feeds without one may be taken whole. */
  limits?: LimitShape[] | null
  multicast?: boolean | null
  active?: boolean | null
  data_connections?: number | null
  /** For a site that keeps its LDM: a pattern of its host's name or address; null: it runs a receiver. */
  ldm_host?: string | null
}

/** How far a site is with a feed. What there is nothing to say of is left out. */
export interface SiteFeed {
  feed: string
  settled_to: number
  pending: number
  transport: Transport
  leg: number
  /** Why the site stores nothing of the feed at the moment, in its words. */
  trouble?: string
  /** Products that came behind a later one, against the order that was asked for. */
  late?: number
  action_failed?: ActionFailed
}

/** Of a feed the site may take what matches `pattern` (OK) and not `not_pattern` (NOT). */
export interface SiteLimit {
  feed: string
  pattern: string
  not_pattern: string | null
}

/** A site with its state, its backlog, and the reason of each feed that it can't store. */
export interface SiteListed {
  site: string
  organisation: string
  contact: string
  place: Place
  /** Interface or address at the site that joins groups; empty: the site's own choice. */
  multicast_interface: string
  circuit_attachment: Attachment | null
  access_rate_bps: number | null
  /** What the site allows the hub, for each hour of the day in UTC; empty: no ceiling. */
  ceiling_mbps_by_hour: number[]
  /** Feeds the site may take; `*` stands for all. */
  allow: string[]
  limits: SiteLimit[]
  /** Whether the site may be served by multicast. */
  multicast: boolean
  active: boolean
  /** How many connections for products it gets beside its first, 0 to 16; null: as many as help. */
  data_connections: number | null
  created_at: string | null
  /** It keeps its LDM: matches the host's name or address. */
  ldm_host: string | null
  /** The record of a relay, which takes no products. */
  relay: boolean
  state: SiteState
  /** The state for people, with its time and reason. */
  state_words: string
  since: string | null
  /** The cause of its absence, if known. */
  reason: string | null
  connected: boolean
  /** The number of its next products that are due, by the hub's log; null while it is unknown. */
  behind_products: number | null
  behind_bytes: number | null
  /** The age of the oldest of them. */
  behind_s: number | null
  /** Products that left the hub's log before the site stored them. */
  lost_products: number | null
  lost_bytes: number | null
  /** The count is not finished: it is a lower bound. */
  behind_counting: boolean | null
  /** By feed, why the site can't store it. */
  troubles: Record<string, string>
}

/** A site to make. */
export interface SiteNew {
  organisation?: string | null
  contact?: string | null
  place?: PlaceShape | null
  multicast_interface?: string | null
  circuit_attachment?: AttachmentShape | null
  access_rate_bps?: number | null
  ceiling_mbps_by_hour?: number[] | null
  allow?: string[] | null
  /** Of these feeds it may take this alone; several to one feed add up, feeds without one may be taken whole. */
  limits?: LimitShape[] | null
  multicast?: boolean | null
  active?: boolean | null
  data_connections?: number | null
  /** For a site that keeps its LDM: a pattern of its host's name or address; null: it runs a receiver. */
  ldm_host?: string | null
  site: string
}

/** A receiver that a site's administrator made. */
export interface SiteReceiver {
  /** Site and name, joined by a slash. */
  site_receiver: string
  site: string | null
  receiver: string
  kind: ReceiverKind
  address: string
  kinds: AlarmKind[]
  feeds: string[]
  sites: string[]
  severities: Severity[]
  owner: string | null
}

/** A site: its state, its backlog, its clock, the way to it, and how far it is with each feed. */
export interface SiteSeen {
  /** The record of a relay, which takes no products. */
  relay: boolean
  state: SiteState
  /** The state for people, with its time and reason. */
  state_words: string
  since: string | null
  /** The cause of its absence, if known. */
  reason: string | null
  connected: boolean
  /** The number of its next products that are due, by the hub's log; null while it is unknown. */
  behind_products: number | null
  behind_bytes: number | null
  /** The age of the oldest of them. */
  behind_s: number | null
  /** Products that left the hub's log before the site stored them. */
  lost_products: number | null
  lost_bytes: number | null
  /** The count is not finished: it is a lower bound. */
  behind_counting: boolean | null
  site: string
  organisation: string
  maintenance: Window | null
  /** Connected, and served by another hub. */
  stand_by: boolean
  clock_offset_ms: number | null
  clock_bound_ms: number | null
  round_trip_ms: number | null
  own_clock: OwnClock | null
  path: PathFacts
  stored: number
  last_receipt: string | null
  feeds: SiteFeed[]
}

/** Words for programs; names are promises. */
export type SiteState = 'removed' | 'never-enrolled' | 'never-connected' | 'connected' | 'stands-by' | 'away'

/** The way of a site, as the scheduler chose it. */
export interface SiteWay {
  /** Relays, the nearest to the site first; none: the direct way. */
  chain: string[]
  reason: string
  predicted_bps: number | null
  /** The prediction for the direct way. */
  direct_bps: number | null
  /** By the chosen way, as achieved since. */
  measured_bps: number | null
  decided_at: string | null
  /** The ordered circuit that carries the segment between two of the relays now; null: all of the way is routed. */
  circuit: number | null
}

/** One site with its subscriptions, credentials and tokens, and the state of its session. */
export interface SiteWhole {
  site: string
  organisation: string
  contact: string
  place: Place
  /** Interface or address at the site that joins groups; empty: the site's own choice. */
  multicast_interface: string
  circuit_attachment: Attachment | null
  access_rate_bps: number | null
  /** What the site allows the hub, for each hour of the day in UTC; empty: no ceiling. */
  ceiling_mbps_by_hour: number[]
  /** Feeds the site may take; `*` stands for all. */
  allow: string[]
  limits: SiteLimit[]
  /** Whether the site may be served by multicast. */
  multicast: boolean
  active: boolean
  /** How many connections for products it gets beside its first, 0 to 16; null: as many as help. */
  data_connections: number | null
  created_at: string | null
  /** It keeps its LDM: matches the host's name or address. */
  ldm_host: string | null
  /** The record of a relay, which takes no products. */
  relay: boolean
  state: SiteState
  /** The state for people, with its time and reason. */
  state_words: string
  since: string | null
  /** The cause of its absence, if known. */
  reason: string | null
  connected: boolean
  /** The number of its next products that are due, by the hub's log; null while it is unknown. */
  behind_products: number | null
  behind_bytes: number | null
  /** The age of the oldest of them. */
  behind_s: number | null
  /** Products that left the hub's log before the site stored them. */
  lost_products: number | null
  lost_bytes: number | null
  /** The count is not finished: it is a lower bound. */
  behind_counting: boolean | null
  subscriptions: Subscription[]
  credentials: Credential[]
  tokens: Token[]
  troubles: Record<string, string>
  heartbeats: Record<string, Heartbeat>
  backlog: FeedBacklog[]
  /** Where receivers connect. */
  sites_address: string[]
  session: SessionShown
}

/** How many products have at most so many bytes, and more than half of it. */
export interface SizeBin {
  up_to_bytes: number
  products: number
}

/** The time between two stamps that follow each other. */
export interface Stage {
  stage: string
  /** Null where a clock or a missing stamp leaves it unknown. May be negative. */
  ms: number | null
  /** Both ends are on different clocks: the value is known to within the bound. */
  across_clocks: boolean
  /** The largest error of the clocks' comparison; null on one clock, and where a source's clock is not compared. */
  bound_ms: number | null
  /** Null without a value, and for a source's clock unless it is wrong. */
  certainty: Certainty | null
}

/** A span in which nothing was acknowledged although bytes waited or were in flight. */
export interface Stall {
  begun_at: string
  until: string
  waiting_bytes: number
  /** False: it may last on. */
  ended: boolean
}

/** The hub and its node, with the node's feeds and sessions. */
export interface Status {
  name: string
  version: string
  started_at: string
  uptime_s: number
  data_dir: string
  sites_address: string[]
  ca_sha256: string
  probes: Record<string, string>
  node: NodeState
  sites_connected: number
  feeds: NodeFeed[]
  sessions: NodeSession[]
}

/** Incidents by severity, without the silenced ones; sites by their latency in the last 15 minutes. */
export interface StatusCounts {
  critical: number
  warning: number
  information: number
  silenced: number
  /** Sites with a subscription that have received something before. */
  sites: number
  /** Sites that receive all measured feeds within the objectives. */
  within: number
  late: number
  down: number
  /** Sites for which products arrived, and that reported no latency. */
  not_measured: number
  /** Sites for which no products were known to be due. */
  idle: number
}

/** The state of the hub in one sentence, the same on the page, in `downburst status` and here. */
export interface StatusSentence {
  sentence: string
  /** A second sentence, about the other sites. */
  detail: string | null
  counts: StatusCounts
}

/** The place of a product on its way to a broker. */
export type Step = 'waiting' | 'announced' | 'refused' | 'expired'

/** A product that is in the log; `duplicate_of` instead of a sequence if it was there before.
    
    Members without a value are left out. */
export interface Stored {
  feed: string
  product_id: string
  stored: boolean
  sequence?: number | null
  epoch?: string | null
  size: number
  digest: string
  stored_at?: string | null
  created_at?: string | null
  duplicate_of?: number | null
}

/** Sites in the last hours, the worst first. */
export interface Strip {
  /** The beginnings of the quarter hours, oldest first; the last one has not ended. */
  quarters: string[]
  rows: StripRow[]
  /** The sites beyond the limit. */
  others: StripRow | null
  /** Sites without a row, because they have never received anything. */
  never_connected: number
}

/** A site in a quarter hour. The share is null without a latency; a site that was down may have one. */
export interface StripCell {
  state: CellState
  /** p99 of the worst feed, relative to its objective at the site: 1 is the objective. */
  share: number | null
  /** The worst feed. */
  feed: string | null
}

/** A site in the last 15 minutes. */
export interface StripNow {
  state: CellState
  /** p99 of the worst feed, relative to its objective at the site: 1 is the objective. */
  share: number | null
  /** The worst feed. */
  feed: string | null
  p99_ms: number | null
  objective_ms: number | null
  /** The deliveries behind the figure; p99 of fewer than 20 is their maximum. */
  products: number
  /** The beginning of the present outage, if it is down. */
  since: string | null
}

/** A site, or the sum of the others: the worst of them in each quarter hour. */
export interface StripRow {
  /** Null: the other sites. */
  site: string | null
  /** Sites in this row. */
  sites: number
  /** One for each of `quarters`. */
  cells: StripCell[]
  now: StripNow
}

/** A site's wish for the products of a feed whose id matches `pattern` and not `not_pattern`. */
export interface Subscription {
  id: number
  site: string
  feed: string
  pattern: string
  not_pattern: string | null
  /** Local software at the site sees live products in the order of their sequences; see `hold_s`. */
  in_order: boolean
  /** How long a missing product holds back the later ones, if `in_order`. */
  hold_s: number
  /** Products stored at the hub longer ago than this are not sent any more. */
  max_age_s: number | null
  start_at: string | null
  created_at: string | null
}

/** Products of a feed whose id matches `pattern` (extended regex, searched) and not `not_pattern`. */
export interface SubscriptionNew {
  feed: string
  pattern?: string
  not_pattern?: string | null
  in_order?: boolean
  hold_s?: number
  max_age_s?: number | null
  /** `now`, RFC 3339 with an offset, or how long ago: `2h`. */
  start?: string
}

/** A switch with its ports. */
export interface Switch {
  name: string
  domain: string
  ports: string[]
  translates: boolean
  node: string | null
}

/** A switch with its ports. */
export interface SwitchWanted {
  name: string
  domain: string
  ports: string[]
  /** Whether a circuit may leave it with another tag than it came with. */
  translates?: boolean
  /** The site whose node translates there; null: the switch itself does, or nothing does. */
  node?: string | null
}

/** The identifier that tells circuits on a link apart. */
export type TagKind = 'vlan' | 'vni'

/** A range of tags. */
export interface Tags {
  kind: TagKind
  first: number
  last: number
}

/** A range of tags. */
export interface TagsWanted {
  kind?: TagKind
  first: number
  last: number
}

/** Values for connections; null: the kernel's and the hub's own. */
export interface TcpKnobs {
  congestion: string | null
  /** For all connections of a site together, like the next one. */
  send_buffer_bytes: number | null
  receive_buffer_bytes: number | null
  /** For each connection; the pacing of a circuit stays the lesser. */
  pacing_bps: number | null
  /** Data connections of a site; a number that is set for the site wins. */
  connections: number | null
}

/** Values for connections; null, or left out: the kernel's and the hub's own. */
export interface TcpKnobsWanted {
  congestion?: string | null
  send_buffer_bytes?: number | null
  receive_buffer_bytes?: number | null
  pacing_bps?: number | null
  connections?: number | null
}

/** A profile with its learnt values and the present or last trial. */
export interface TcpProfile {
  profile: string
  prefix: string
  mode: ProfileMode
  knobs: TcpKnobs
  /** The values that the node keeps in the mode `learn`. */
  learnt: TcpKnobs | null
  /** The present trial, or the last one; null: there was none with these values. */
  trial: TcpTrial | null
  created_at: string | null
  changed_at: string | null
}

/** A profile, without its name. */
export interface TcpProfileWanted {
  /** IPv4 or IPv6, without bits of the host; of several prefixes with an address, the longest applies. */
  prefix: string
  /** `static`: the values apply; `trial`: some connections try them; `learn`: the node finds values by trials. */
  mode?: ProfileMode
  /** None in the mode `learn`. */
  knobs?: TcpKnobsWanted
}

/** A step of a trial, with its figures. */
export interface TcpTrial {
  step: TrialStep
  /** The candidate. */
  knobs: TcpKnobs
  /** The values that applied until then. */
  before: TcpKnobs
  /** Connections with the candidate. */
  canaries: number
  others: number
  /** The median of a connection over the compared windows, like the next one. */
  canary_bps: number | null
  others_bps: number | null
  /** The rate with the candidate as a multiple of the rate without. */
  ratio: number | null
  windows: number
  reason: string
  at: string
  /** The sender that made the trial; empty: the hub's own node. */
  sender: string
}

/** A test point. */
export interface TestPoint {
  point: string
  addresses: string[]
  site: string | null
  created_at: string | null
}

/** A perfSONAR host whose results this hub takes. */
export interface TestPointWanted {
  point: string
  /** The names and addresses under which the host stands in results. */
  addresses: string[]
  /** The site at which it stands; null: none, as at the hub. */
  site?: string | null
}

/** What comes in and goes out. */
export interface Throughput {
  in_bps: number
  out_bps: number
  unicast_equivalent_bps: number
  egress_bytes: number
  unicast_equivalent_bytes: number
}

/** A product's time on its way to one site. */
export interface Timing {
  /** From the hub's log to the site's log. */
  distribution_ms: number | null
  end_to_end_ms: number | null
  /** The largest error of the clocks' comparison; the clock of the source is not compared. */
  bound_ms: number | null
  /** Of `distribution_ms`. */
  certainty: Certainty | null
  /** The stage that took most, if the product was late. */
  slow: string | null
  stages: Stage[]
}

/** An enrolment token: when and by whom it was used, never its secret. */
export interface Token {
  site: string
  created_at: string
  expires_at: string
  used_at: string | null
  used_peer: string | null
}

/** An enrolment token with its text, which is shown only here. */
export interface TokenMade {
  token: string
  site: string
  created_at: string
  expires_at: string
  used_at: string | null
  used_peer: string | null
}

/** How long an enrolment token lasts; the hub's setting `token_hours` if left out. */
export interface TokenNew {
  hours?: number | null
  /** How long the receiver's credential lasts, and each that takes its place; the hub's setting
      `access.credential_days` if left out. */
  credential_days?: number | null
}

/** How many unused enrolment tokens of a site ended. */
export interface TokensEnded {
  site: string
  ended: number
}

/** The whole topology, each kind by name. */
export interface Topology {
  domains: Domain[]
  switches: Switch[]
  links: Link[]
  hosts: Host[]
  maintenance: MaintenanceWindow[]
}

/** A topology that was put, or would be by a dry run. */
export interface TopologyAnswered {
  domains: Domain[]
  switches: Switch[]
  links: Link[]
  hosts: Host[]
  maintenance: MaintenanceWindow[]
  /** A sentence each. */
  changes: string[]
  /** Circuits with a window that reaches into a maintenance of what they hold; they stay. */
  affected: number[]
  done: boolean
}

/** A whole topology; kinds that are left out have no elements. */
export interface TopologyWanted {
  domains?: DomainWanted[]
  switches?: SwitchWanted[]
  links?: LinkWanted[]
  hosts?: HostWanted[]
  maintenance?: MaintenanceWanted[]
}

/** Totals of all legs of all feeds. */
export interface Totals {
  egress_bytes: number
  unicast_equivalent_bytes: number
  product_bytes: number
  repair_bytes: number
  control_bytes: number
}

/** Where products are that a name may mean, newest first. */
export interface Trace {
  asked: string
  /** On the hub's clock. */
  answered_at: string
  /** How the name was understood: file, sequence, id or digest. */
  read_as: string
  products: ProductTraced[]
  next_before: number | null
  /** What a reader must know about the limits of the answer. */
  notes: string[]
}

/** One connection between the hub's node and the site. */
export interface TracedConnection {
  local: string
  peer: string
  /** `session`, or `data` for a further connection of it. */
  role: string
  /** Oldest first: the time in microseconds since 1970, then a value for each of `variables`; null: the kernel does
      not report it. */
  samples: ((number | null)[])[]
  /** Null: there are no two samples to compare. */
  verdict: Verdict | null
  stalls: Stall[]
}

/** The connections of a site in a period. */
export interface TracedSite {
  site: string
  /** The reason why samples are missing; null: none are. */
  unable: string | null
  /** Looks that came too late and were left out, since the node began. */
  missed_ticks: number
  /** Damaged records that were passed over. */
  damaged: number
  /** The time of the oldest sample that is kept, of any site; null: there is none. */
  recorded_since: string | null
  recorded_until: string | null
  /** False: there were more samples or connections than an answer holds; the newest are here. */
  complete: boolean
  /** Names as in the kernel's `struct tcp_info`. */
  variables: string[]
  /** Those of `variables` that count from the connection's beginning on: only differences have a meaning. */
  counters: string[]
  connections: TracedConnection[]
}

/** A quarter hour; null: nothing was stored for it. */
export interface TrafficPoint {
  at: string
  in_bps: number | null
  out_bps: number | null
  /** The share of the bytes of separate copies for each site that multicast and relays saved; may be negative. */
  saved_share: number | null
  /** p99 of the worst feed at any site, relative to its objective. */
  worst_share: number | null
}

/** The arrivals that other conditions are tried on. */
export type TrafficSpan = 'now' | 'busiest'

/** Sums since 00:00 UTC, or since the hub began to count; null: nothing was stored. */
export interface TrafficToday {
  since: string | null
  in_bytes: number | null
  egress_bytes: number | null
  unicast_equivalent_bytes: number | null
}

/** How the bytes of a leg travel. */
export type Transport = 'unicast' | 'static-circuit' | 'dynamic-circuit' | 'multicast'

/** The distribution tree: upstreams, this hub, relays, and sites with their feeds; no addresses, no contacts. */
export interface Tree {
  hub: string
  upstreams: TreeUpstream[]
  relays: TreeRelay[]
  sites: TreeSite[]
}

/** A feed that a site takes, and how it travels now. */
export interface TreeFeed {
  feed: string
  transport: Transport | null
  /** The relay that fans it out to this site, by the present plan. */
  relay: string | null
}

/** A relay of this hub, with the sites behind it. */
export interface TreeRelay {
  relay: string
  connected: boolean
  sites: string[]
}

/** A site with its feeds. */
export interface TreeSite {
  site: string
  organisation: string
  connected: boolean
  /** The relays on its way to the hub, the nearest to the site first. */
  via: string[]
  /** The ordered circuit between two of these relays that carries it now. */
  circuit: number | null
  feeds: TreeFeed[]
}

/** A hub that this hub is a site of. */
export interface TreeUpstream {
  upstream: string
  connected: boolean
  feeds: string[]
}

/** The steps of a trial. */
export type TrialStep = 'began' | 'kept' | 'not-better' | 'taken-back'

/** The unit of a figure. */
export type Unit = 'us' | 'bps'

/** An upstream, without its token. */
export interface Upstream {
  upstream: string
  address: string
  /** The feeds to take; none: all that exist here and that it sends. */
  feeds: string[]
  created_at: string | null
}

/** An upstream with its state; members after `connected` are left out while the node has not told them. */
export interface UpstreamListed {
  upstream: string
  address: string
  feeds: string[]
  created_at: string | null
  connected: boolean
  /** What it calls itself. */
  hub?: string | null
  reason?: string | null
  stored?: number | null
  passed_over?: number | null
  looped?: number | null
  [name: string]: unknown
}

/** A hub that this hub becomes a site of. */
export interface UpstreamNew {
  upstream: string
  address: string
  token: string
  feeds?: string[]
}

/** A hub that this hub is a site of. */
export interface UpstreamSeen {
  upstream: string
  address: string
  /** None: every feed that both hubs have. */
  feeds: string[]
  connected: boolean
  since: string | null
  /** What it calls itself; null until it was first heard. */
  hub: string | null
  reason: string | null
}

/** The part of a day's budget that is used, from midnight UTC. */
export interface UsedToday {
  circuit_hours: number
  orders: number
}

/** A person who signs in with a password, or at a provider of OpenID Connect. */
export interface User {
  user: string
  role: Role
  site: string | null
  active: boolean
  /** False until the invitation was accepted, and for users of a provider. */
  has_password: boolean
  created_at: string | null
  /** The provider at which the user signs in; null: a local user. */
  issuer: string | null
}

/** Properties of a user; those left out stay. */
export interface UserChange {
  role?: Role | null
  site?: string | null
  active?: boolean | null
}

/** A user with an invitation, which is shown only here. */
export interface UserInvited {
  user: string
  role: Role
  site: string | null
  active: boolean
  /** False until the invitation was accepted, and for users of a provider. */
  has_password: boolean
  created_at: string | null
  /** The provider at which the user signs in; null: a local user. */
  issuer: string | null
  fragment: string
  link_expires_at: string
}

/** A user to invite. */
export interface UserNew {
  user: string
  role: Role
  site?: string | null
}

/** The limits of a connection, by their share of its time. */
export interface Verdict {
  /** The limit with the largest share. */
  leading: string
  /** Names it, its share, and what would help. */
  sentence: string
  /** The time that was judged. */
  seconds: number
  /** Of all limits, the largest first; their sum is 1. */
  shares: LimitShare[]
}

/** The volume of each feed, the largest first. */
export interface Volume {
  minutes: number
  since: string
  hours_seen: number
  bytes: number
  feeds: FeedVolume[]
}

/** Volume over time, oldest first; steps without products are left out. */
export interface VolumeHistory {
  step_minutes: number
  from: string
  to: string
  points: Arrivals[]
}

/** A test that is to run at once. */
export interface WantedTest {
  /** The kind of test; it bounds rate and time. */
  test?: string
  /** Left out: the hub's only port. */
  near?: EndOfTest
  far?: EndOfTest
  /** From the near end to the far one, in Ethernet-frame bits per second. */
  rate_out_bps?: number
  rate_in_bps?: number
  seconds: number
  /** The circuit inside which it runs, with that one's rate; left out: it needs free rate beside all circuits. */
  circuit?: number | null
  by?: string
}

/** The planner's answer to other conditions of a feed. */
export interface WhatIf {
  feed: string
  today: Conditions
  tried: Conditions
  traffic: TrafficSpan
  /** In the window of arrivals that was played. */
  products: number
  /** The length of that window. */
  span_s: number
  mean_bps: number
  /** The time since the begin of that window. */
  begun_s_ago: number
  /** The decision at this moment, which a change may still wait for. */
  now: Judgement
  /** The decision under the tried conditions, once they have lasted. */
  then: Judgement
  flips: ConditionFlip[]
  /** False: flips were not searched, or not to the end. */
  complete: boolean
  notes: string[]
}

/** Other conditions of a feed to try; those left out are as today. Nothing is changed by trying. */
export interface WhatIfNew {
  /** Fan-out: fewer of the feed's sites, or more like them. */
  sites?: number | null
  /** Egress of the hub that is free for this feed, as Ethernet-frame bits per second. */
  egress_bps?: number | null
  objective_ms?: number | null
  /** Set-up time of circuits on demand. */
  setup_s?: number | null
  /** now: the arrivals that the plan in force rests on; busiest: the busiest such window of the last day. */
  traffic?: TrafficSpan
  /** Whether to search the values at which the choice flips, which takes seconds for a busy feed. */
  flips?: boolean
}

/** The caller of a hub. */
export interface Who {
  user: string | null
  role: Role | null
  /** The one site of a user with the role `site`. */
  site: string | null
  scopes: Scope[]
  hub: string
}

/** A maintenance window of a whole site. */
export interface Window {
  number: number
  until: string
  reason: string
  by: string
}

/** The first window with room; null: none begins in time. */
export interface WindowAnswer {
  sentence: string
  found: WindowFound | null
}

/** When can a circuit have these rates for so long? */
export interface WindowAsked {
  /** A site that has one port, or a port of a site. */
  to: string
  /** The hub's port; left out: its only one. */
  port?: string
  order?: PathOrder
  /** Links and switches that the path must pass. */
  include?: string[]
  /** Links and switches that it must not pass. */
  exclude?: string[]
  rate_out_bps: number
  rate_in_bps?: number
  minutes: number
  /** The earliest begin: RFC 3339, or +2h. */
  first?: string
  /** The latest begin. */
  last?: string
}

/** A window with room. */
export interface WindowFound {
  begin: string
  end: string
  hub_port: string
  port: string
  /** Empty: the topology has no links at these ports, so the ports alone count. */
  path: CircuitHop[]
}

/** The statements of a notification of WIS2 about its product. */
export interface Wis2Statement {
  topic: string
  centre: string
  notification_id: string
  data_id: string
  metadata_id: string | null
  /** The relation of its link: `canonical` or `update`. */
  kind: string
  /** `pubtime`, on the clock of its centre. */
  published_at: string
  url: string
  /** Members were left out, as the notification is too long for a product. */
  shortened: boolean
  /** Null on a hub that has the product from elsewhere, two days later, and after a later notification. */
  heard: Heard | null
}

/** Data that are withdrawn. */
export interface Withdrawal {
  data_id: string
}

/** Why a request was refused: one sentence with the problem and the remedy (RFC 9457). */
export interface Problem {
  type: string
  title: string
  status: number
  detail: string
  code: string
}
