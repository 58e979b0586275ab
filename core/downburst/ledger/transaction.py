"""One transaction's view of the ledger: a repository for each noun."""

from sqlalchemy import Connection

from downburst.foundation.clock import Clock
from downburst.ledger.repositories.access import AccessTokens, Links, Sessions, Users
from downburst.ledger.repositories.access_requests import AccessRequests
from downburst.ledger.repositories.alarms import Alarms, Objectives, Receivers, Silences, SiteReceivers
from downburst.ledger.repositories.answers import Answers
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.circuits import Circuits, Ports
from downburst.ledger.repositories.clocks import Clocks
from downburst.ledger.repositories.credentials import Credentials, Tokens
from downburst.ledger.repositories.exceptions import Exceptions
from downburst.ledger.repositories.feeds import Feeds
from downburst.ledger.repositories.journal import Faults, Traffic
from downburst.ledger.repositories.latency.history import Latency
from downburst.ledger.repositories.ldm import LdmAccepts, LdmSources
from downburst.ledger.repositories.log_heads import LogHeads
from downburst.ledger.repositories.plans import Legs, Pins, Plans
from downburst.ledger.repositories.receipts import Batches, Frontiers
from downburst.ledger.repositories.resends import Resends
from downburst.ledger.repositories.senders import Assignments, Senders
from downburst.ledger.repositories.sites import Sites, Subscriptions
from downburst.ledger.repositories.upstreams import Upstreams
from downburst.ledger.storage.partitions import Partitions


class Transaction:
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
        self.log_heads = LogHeads(connection, clock)
        self.settled = Frontiers(connection)
        self.exceptions = Exceptions(connection)
        self.batches = Batches(connection, clock)
        self.faults = Faults(connection)
        self.traffic = Traffic(connection)
        self.partitions = Partitions(connection)
