"""One transaction's view of the ledger: a repository for each noun."""

from sqlalchemy import Connection

from downburst.clock import Clock
from downburst.ledger.access import AccessTokens, Links, Sessions, Users
from downburst.ledger.access_requests import AccessRequests
from downburst.ledger.alarms import Alarms, Objectives, Receivers, Silences, SiteReceivers
from downburst.ledger.answers import Answers
from downburst.ledger.audit import Audit
from downburst.ledger.circuits import Circuits, Ports
from downburst.ledger.clocks import Clocks
from downburst.ledger.credentials import Credentials, Tokens
from downburst.ledger.exceptions import Exceptions
from downburst.ledger.feeds import Feeds
from downburst.ledger.heads import Heads
from downburst.ledger.journal import Faults, Traffic
from downburst.ledger.latency import Latency
from downburst.ledger.ldm import LdmAccepts, LdmSources
from downburst.ledger.partitions import Partitions
from downburst.ledger.plans import Legs, Pins, Plans
from downburst.ledger.receipts import Batches, Frontiers
from downburst.ledger.resends import Resends
from downburst.ledger.senders import Assignments, Senders
from downburst.ledger.sites import Sites, Subscriptions
from downburst.ledger.upstreams import Upstreams


class Book:
    """Every query, grouped by noun; valid until its transaction ends."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self.clock = clock
        self.legs = Legs(connection)
        self.feeds = Feeds(connection, clock)
        self.sites = Sites(connection, clock)
        self.credentials = Credentials(connection, clock)
        self.tokens = Tokens(connection, clock)
        self.subscriptions = Subscriptions(connection, clock)
        self.resends = Resends(connection, clock)
        self.upstreams = Upstreams(connection, clock)
        self.ldm_sources = LdmSources(connection, clock)
        self.ldm_accepts = LdmAccepts(connection, clock)
        self.users = Users(connection, clock)
        self.access_tokens = AccessTokens(connection, clock)
        self.login_sessions = Sessions(connection, clock)
        self.login_links = Links(connection, clock)
        self.answers = Answers(connection, clock)
        self.audit = Audit(connection, clock)
        self.access_requests = AccessRequests(connection, clock)
        self.alarms = Alarms(connection, clock)
        self.silences = Silences(connection, clock)
        self.alarm_receivers = Receivers(connection, clock)
        self.site_receivers = SiteReceivers(connection, clock)
        self.objectives = Objectives(connection, clock)
        self.ports = Ports(connection, clock)
        self.circuits = Circuits(connection, clock)
        self.senders = Senders(connection, clock)
        self.assignments = Assignments(connection, clock)
        self.clocks = Clocks(connection, clock)
        self.plans = Plans(connection)
        self.pins = Pins(connection, clock)
        self.latency = Latency(connection)
        self.heads = Heads(connection, clock)
        self.settled = Frontiers(connection)
        self.exceptions = Exceptions(connection)
        self.batches = Batches(connection, clock)
        self.faults = Faults(connection)
        self.traffic = Traffic(connection)
        self.partitions = Partitions(connection)
