"""One transaction's view of the ledger: a repository for each noun."""

from sqlalchemy import Connection

from downburst.foundation.clock import Clock
from downburst.ledger.repositories.access import AccessTokens, Links, Sessions, Users
from downburst.ledger.repositories.access_requests import AccessRequests
from downburst.ledger.repositories.alarms import Alarms, Objectives, Receivers, Silences, SiteReceivers
from downburst.ledger.repositories.answers import Answers
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.bridges.holes import Holes
from downburst.ledger.repositories.bridges.notices import CentreDays, Notices
from downburst.ledger.repositories.bridges.outgoing import Outbox
from downburst.ledger.repositories.bridges.publishers import Wis2Publishers
from downburst.ledger.repositories.bridges.sources import Wis2Sources
from downburst.ledger.repositories.circuits import Circuits, Ports
from downburst.ledger.repositories.clocks import Clocks
from downburst.ledger.repositories.credentials import Credentials, Tokens
from downburst.ledger.repositories.exceptions import Exceptions
from downburst.ledger.repositories.feeds import Feeds
from downburst.ledger.repositories.journal import Egress, Faults, Traffic
from downburst.ledger.repositories.latency.history import Latency
from downburst.ledger.repositories.latency.seconds import FeedSeconds
from downburst.ledger.repositories.ldm import LdmAccepts, LdmSources
from downburst.ledger.repositories.log_heads import LogHeads
from downburst.ledger.repositories.measuring.points import TestPoints
from downburst.ledger.repositories.measuring.results import Measurements
from downburst.ledger.repositories.ordering.connections import Connections
from downburst.ledger.repositories.ordering.offers import Offers
from downburst.ledger.repositories.ordering.orders import DemandOrders
from downburst.ledger.repositories.ordering.providers import NsiOrders, Providers
from downburst.ledger.repositories.plans import Legs, Pins, Plans
from downburst.ledger.repositories.probes.probes import Probes
from downburst.ledger.repositories.probes.schedules import ProbeCeilings, ProbeSchedules
from downburst.ledger.repositories.receipts import Batches, Frontiers
from downburst.ledger.repositories.relays.log import RelayLog
from downburst.ledger.repositories.relays.relays import Relays
from downburst.ledger.repositories.relays.siblings import Siblings
from downburst.ledger.repositories.relays.ways import Ways
from downburst.ledger.repositories.resends import Resends
from downburst.ledger.repositories.senders import Assignments, Senders
from downburst.ledger.repositories.sites import Sites, Subscriptions
from downburst.ledger.repositories.tcp.profiles import TcpProfiles
from downburst.ledger.repositories.topology.occupancies import Occupancies
from downburst.ledger.repositories.topology.topologies import Topologies
from downburst.ledger.repositories.upstreams import Upstreams
from downburst.ledger.storage.partitions import Partitions


class Transaction:
    """All queries, grouped by noun; valid until the transaction ends."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.clock = clock
        self.feeds = Feeds(connection, clock)
        self.sites = Sites(connection, clock)
        self.subscriptions = Subscriptions(connection, clock)
        self.resends = Resends(connection, clock)
        self.ports = Ports(connection, clock)
        self.circuits = Circuits(connection, clock)
        self.planning = Planning(connection, clock)
        self.fleet = Fleet(connection, clock)
        self.ldm = Ldm(connection, clock)
        self.wis2 = Wis2(connection, clock)
        self.enrolment = Enrolment(connection, clock)
        self.access = Access(connection, clock)
        self.alerting = Alerting(connection, clock)
        self.measured = Measured(connection, clock)


class Planning:
    """The transports of feeds; circuits on demand with their offers, providers and orders; the topology."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.plans = Plans(connection)
        self.pins = Pins(connection, clock)
        self.legs = Legs(connection)
        self.offers = Offers(connection, clock)
        self.providers = Providers(connection, clock)
        self.orders = DemandOrders(connection, clock)
        self.nsi = NsiOrders(connection)
        self.connections = Connections(connection, clock)
        self.topology = Topologies(connection, clock)
        self.occupancies = Occupancies(connection)


class Fleet:
    """The nodes of a hub, their assignments and tuning, its relays, siblings, and the hubs above it."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.senders = Senders(connection, clock)
        self.assignments = Assignments(connection, clock)
        self.tcp_profiles = TcpProfiles(connection, clock)
        self.relays = Relays(connection, clock)
        self.ways = Ways(connection, clock)
        self.relay_log = RelayLog(connection, clock)
        self.siblings = Siblings(connection, clock)
        self.upstreams = Upstreams(connection, clock)


class Ldm:
    """LDM's peers."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.sources = LdmSources(connection, clock)
        self.accepts = LdmAccepts(connection, clock)


class Wis2:
    """Sources of WIS2, and what came by them."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.sources = Wis2Sources(connection, clock)
        self.notices = Notices(connection, clock)
        self.days = CentreDays(connection)
        self.holes = Holes(connection, clock)
        self.publishers = Wis2Publishers(connection, clock)
        self.outbox = Outbox(connection, clock)


class Enrolment:
    """Credentials of receivers, and the tokens for their enrolment."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.tokens = Tokens(connection, clock)
        self.credentials = Credentials(connection, clock)


class Access:
    """Users and programs: their rights, and their changes."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.users = Users(connection, clock)
        self.tokens = AccessTokens(connection, clock)
        self.sessions = Sessions(connection, clock)
        self.links = Links(connection, clock)
        self.requests = AccessRequests(connection, clock)
        self.answers = Answers(connection, clock)
        self.audit = Audit(connection, clock)


class Alerting:
    """Alarms and their receivers."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.alarms = Alarms(connection, clock)
        self.silences = Silences(connection, clock)
        self.receivers = Receivers(connection, clock)
        self.site_receivers = SiteReceivers(connection, clock)
        self.objectives = Objectives(connection, clock)


class Probing:
    """Probes of paths."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.probes = Probes(connection, clock)
        self.schedules = ProbeSchedules(connection, clock)
        self.ceilings = ProbeCeilings(connection, clock)


class Measured:
    """Reports of nodes, and results of other measuring systems."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.latency = Latency(connection)
        self.feed_seconds = FeedSeconds(connection)
        self.settled = Frontiers(connection)
        self.exceptions = Exceptions(connection)
        self.batches = Batches(connection, clock)
        self.traffic = Traffic(connection)
        self.egress = Egress(connection)
        self.clocks = Clocks(connection, clock)
        self.faults = Faults(connection)
        self.log_heads = LogHeads(connection, clock)
        self.partitions = Partitions(connection)
        self.probing = Probing(connection, clock)
        self.points = TestPoints(connection, clock)
        self.measurements = Measurements(connection)
