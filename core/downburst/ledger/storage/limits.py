"""Limits on the number of rows for each holder.

A limit is checked in the transaction that adds the row, so concurrent requests can't bypass it: SQLite has one
writer at a time, and on PostgreSQL the check takes a lock of that limit and holder until the transaction ends.
`growth.py` lists the bounds of each table.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, text, tuple_

from downburst.foundation.errors import LimitReached
from downburst.ledger.storage.databases import speaks_postgresql


@dataclass(frozen=True, slots=True)
class RowLimit:
    """The maximum number of rows of one kind for a holder; more are refused."""

    name: str
    """Stable; problem documents carry it."""
    most: int
    rows: str
    """The things counted, in the plural."""
    per: str
    """The holder: the rows of each one are counted together."""
    remedy: str
    """The remedy, as part of a sentence."""
    reason: str
    """The reason for this number."""

    def check(self, connection: Connection, table: Table, *where: ColumnElement[bool], holder: str) -> None:
        """Refuses one more row at the limit; call it in the transaction that adds the row, before the insert."""
        lock(connection, self.name, holder)
        self.check_count(connection.scalar(select(func.count()).select_from(table).where(*where)) or 0, holder=holder)

    def check_count(self, count: int, *, holder: str) -> None:
        """The same for rows that the caller counted under a lock."""
        if count >= self.most:
            raise LimitReached(
                f"{holder} has {count:,} {self.rows}, and the limit is {self.most:,}; {self.remedy}",
                limit=self.name,
                most=self.most,
                count=count,
            )


@dataclass(frozen=True, slots=True)
class Newest:
    """The number of rows of one kind kept for a holder; the oldest beyond them are removed."""

    name: str
    most: int
    rows: str
    per: str
    reason: str

    def make_room(
        self, connection: Connection, table: Table, *where: ColumnElement[bool], by: ColumnElement[Any], holder: str
    ) -> None:
        """Makes room for one more row; call it in the transaction that adds the row, before the insert."""
        lock(connection, self.name, holder)
        self._remove(connection, table, where, by, keep=self.most - 1)

    def trim(
        self, connection: Connection, table: Table, *where: ColumnElement[bool], by: ColumnElement[Any], holder: str
    ) -> None:
        """Removes the rows beyond the limit, in the transaction that added rows."""
        lock(connection, self.name, holder)
        self._remove(connection, table, where, by, keep=self.most)

    def _remove(
        self,
        connection: Connection,
        table: Table,
        where: tuple[ColumnElement[bool], ...],
        by: ColumnElement[Any],
        *,
        keep: int,
    ) -> None:
        keys = list(table.primary_key.columns)
        old = select(*keys).where(*where).order_by(by.desc(), *keys).offset(keep)
        found: Any = keys[0] if len(keys) == 1 else tuple_(*keys)
        connection.execute(delete(table).where(found.in_(old)))


def lock(connection: Connection, name: str, holder: str) -> None:
    """Blocks checks of the same limit and holder by other transactions until this one has ended."""
    if speaks_postgresql(connection):
        query = text("SELECT pg_advisory_xact_lock(:space, hashtext(:what))")
        connection.execute(query, {"space": LIMIT_SPACE, "what": f"{name} {holder}"})


LIMIT_SPACE = 7_372
"""Key space of PostgreSQL's advisory locks; others begin with 7370 and 7371."""

FEEDS = RowLimit(
    "feeds",
    1_000,
    "feeds",
    "hub",
    "remove one that is not needed: downburst feeds remove NAME",
    "LDM has 32 types; each feed has a log on disk and a plan",
)
SITES = RowLimit(
    "sites",
    10_000,
    "sites",
    "hub",
    "remove one that is not needed: downburst sites remove NAME",
    "ten times the largest network that was measured",
)
SUBSCRIPTIONS_OF_SITE = RowLimit(
    "subscriptions-of-site",
    500,
    "subscriptions",
    "site",
    "remove one first (`downburst subscriptions list` shows them), or join patterns with `|`",
    "each product is matched against every pattern of its feed",
)
PENDING_TOKENS_OF_SITE = RowLimit(
    "pending-tokens-of-site",
    20,
    "unused enrolment tokens",
    "site",
    "end them and make another one: downburst sites end-tokens SITE",
    "one for each receiver that is set up at a time",
)
PENDING_TOKENS = RowLimit(
    "pending-tokens",
    10_000,
    "unused enrolment tokens",
    "hub",
    "wait until some are used or have ended, or make them last shorter (`downburst sites token --hours`)",
    "one for each site, when a whole network is enrolled in a day",
)
ENDED_TOKENS_OF_SITE = Newest(
    "ended-tokens-of-site",
    100,
    "used and ended enrolment tokens",
    "site",
    "a receiver that lost the answer asks with its token again, within minutes",
)
CREDENTIALS_OF_SITE = RowLimit(
    "credentials-of-site",
    100,
    "usable credentials",
    "site",
    "revoke one of a receiver that is gone: downburst sites revoke",
    "receivers of one site; each is sent to the node with every change",
)
REPLACEMENTS_OF_SITE = RowLimit(
    "replacements-of-site",
    1_000,
    "replacements of credentials within a day",
    "site",
    "a receiver offers one when a third of its time is left; check the site's receivers",
    "ten for each receiver that a site can have",
)
ENDED_CREDENTIALS_OF_SITE = Newest(
    "ended-credentials-of-site",
    2_000,
    "revoked, replaced and ended credentials",
    "site",
    "more than a day's replacements, so that these can be counted",
)
RESENDS_OF_SITE = RowLimit(
    "resends-of-site",
    50,
    "waiting resends and backfills",
    "site",
    "wait until one ends, or cancel one: downburst resends cancel NUMBER",
    "each reads the log from disk; one covers any range of a feed",
)
WINDOWS_OF_SITE = RowLimit(
    "windows-of-site",
    20,
    "windows of maintenance",
    "site",
    "end one first: its page lists them",
    "a window each fortnight for most of a year",
)
SILENCES_OF_MAKER = RowLimit(
    "silences-of-maker",
    2_000,
    "silences",
    "user or token",
    "end one first: downburst alarms silences lists them",
    "a window for each site of a large network, all made by one program",
)
SILENCES = RowLimit(
    "silences",
    10_000,
    "silences",
    "hub",
    "end some first: downburst alarms silences lists them",
    "each is compared with every alarm, each second",
)
RECEIVERS = RowLimit(
    "alarm-receivers",
    200,
    "alarm receivers",
    "hub",
    "remove one first: downburst alarms receivers lists them",
    "each gets every alarm, one after the other",
)
RECEIVERS_OF_SITE = RowLimit(
    "alarm-receivers-of-site",
    10,
    "alarm receivers",
    "site",
    "remove one first: its page lists them",
    "administrators of sites make the hub connect to these",
)
USERS = RowLimit(
    "users", 10_000, "users", "hub", "remove one: downburst users list shows them", "one for each site and more"
)
ACCESS_TOKENS_OF_MAKER = RowLimit(
    "access-tokens-of-maker",
    2_000,
    "usable access tokens",
    "user or token",
    "revoke one first: downburst tokens list shows them",
    "one for each site of a large network, all made by one administrator",
)
ACCESS_TOKENS = RowLimit(
    "access-tokens",
    10_000,
    "usable access tokens",
    "hub",
    "revoke some first: downburst tokens list shows them",
    "one for each site and more",
)
ENDED_ACCESS_TOKENS = Newest(
    "ended-access-tokens",
    1_000,
    "revoked and ended access tokens",
    "hub",
    "the audit has the others",
)
SESSIONS_OF_USER = Newest(
    "sessions-of-user", 50, "sessions", "user", "browsers and machines of one person; the oldest is signed out"
)
LINKS_OF_USER = Newest(
    "links-of-user", 10, "links to sign in", "user", "each lasts ten minutes; people use the newest"
)
REQUESTS = RowLimit(
    "access-requests",
    500,
    "waiting requests for access",
    "hub",
    "ask its operator by mail",
    "as many as operators can read",
)
REQUESTS_OF_ADDRESS = RowLimit(
    "access-requests-of-address",
    20,
    "waiting requests for access",
    "address",
    "wait for an answer, or ask the operator by mail",
    "an institute with many sites; one client does not fill the queue",
)
KEYS_OF_TENANT = RowLimit(
    "idempotency-keys-of-tenant",
    5_000,
    "requests with an Idempotency-Key within a day",
    "tenant",
    "send it without a key, or try again later: each key is kept for a day",
    "a script that makes a large network, and 5 MB of answers",
)
KEYS_OF_STRANGER = RowLimit(
    "idempotency-keys-of-address",
    50,
    "requests with an Idempotency-Key within a day",
    "address without a login",
    "send it without a key, or try again later: each key is kept for a day",
    "without a login a key is of use to a request for access alone",
)
KEYS_OF_STRANGERS = RowLimit(
    "idempotency-keys-without-login",
    5_000,
    "requests with an Idempotency-Key and without a login within a day",
    "hub",
    "send it without a key, or try again later: each key is kept for a day",
    "as many as one tenant may have",
)
CHANGES_OF_TENANT = RowLimit(
    "changes-of-tenant",
    5_000,
    "changes within a day",
    "viewer, and per user or token of a site",
    "try again later, or ask an operator",
    "the audit keeps each for years; a person makes some dozens",
)
UPSTREAMS = RowLimit(
    "upstreams",
    100,
    "upstreams",
    "hub",
    "remove one first: downburst upstreams list shows them",
    "each is a session and its threads",
)
LDM_SOURCES = RowLimit(
    "ldm-sources",
    500,
    "LDM sources",
    "hub",
    "remove one first: downburst ldm sources shows them",
    "REQUEST lines of a large ldmd.conf",
)
LDM_ACCEPTS = RowLimit(
    "ldm-accepts",
    2_000,
    "ACCEPT lines",
    "hub",
    "remove one first: downburst ldm accepts shows them",
    "lines of a large ldmd.conf; each connection is compared with all",
)
WIS2_SOURCES = RowLimit(
    "wis2-sources",
    100,
    "sources of WIS2",
    "hub",
    "remove one first: downburst bridges list shows them",
    "each has a connection to each of its brokers",
)
WIS2_PUBLISHERS = RowLimit(
    "wis2-publishers",
    200,
    "publishers of WIS2",
    "hub",
    "remove one first: downburst publishers list shows them",
    "one for each dataset of a large centre",
)
WIS2_HOLES_OF_SOURCE = Newest(
    "wis2-holes-of-source", 1_000, "holes", "source", "a broker that restarts three times a day for a year"
)
TCP_PROFILES = RowLimit(
    "tcp-profiles",
    1_000,
    "TCP profiles",
    "hub",
    "remove one first: downburst tcp-profiles list shows them",
    "a node reads no more; each connection is compared with all",
)
TEST_POINTS = RowLimit(
    "test-points",
    200,
    "test points",
    "hub",
    "remove one first: downburst measurements points list shows them",
    "one for each campus of a large network",
)
MEASUREMENTS_OF_POINT = Newest(
    "measurements-of-point",
    5_000,
    "measurements",
    "test point",
    "a result every five minutes for 17 days",
)
RELAYS = RowLimit(
    "relays",
    200,
    "relays",
    "hub",
    "remove one first: downburst relays list shows them",
    "one for each campus of a large network; each is priced for the sites behind it",
)
LOG_OF_RELAY = Newest(
    "log-of-relay",
    2_000,
    "recorded tunnels",
    "relay",
    "a day and more of a hundred sites; a tunnel is recorded at its end, and each hour until then",
)
PORTS = RowLimit(
    "ports", 5_000, "ports", "hub", "remove one first: downburst ports list shows them", "one for every other site"
)
CIRCUITS = RowLimit(
    "circuits",
    50_000,
    "unfinished circuits",
    "hub",
    "cancel some first: downburst circuits list shows them",
    "five times the calendar that was measured",
)
PROBES_OF_SITE = RowLimit(
    "probes-of-site",
    20,
    "waiting probes",
    "site",
    "wait until one ends, or stop one: downburst probe stop NUMBER",
    "one probe of a site runs at a time",
)
ENDED_PROBES_OF_SITE = Newest(
    "ended-probes-of-site", 500, "ended probes", "site", "five a day for a hundred days, with their seconds"
)
PROBE_SCHEDULES_OF_SITE = RowLimit(
    "probe-schedules-of-site",
    10,
    "schedules of probes",
    "site",
    "remove one first: downburst probe schedule list shows them",
    "each kind in both directions, and some more",
)
TOPOLOGY_ELEMENTS = RowLimit(
    "topology-elements",
    5_000,
    "elements of the topology",
    "hub",
    "remove some first: downburst topology show lists them",
    "a thousand links with their switches; each search for a path reads all",
)
CIRCUIT_OFFERS = RowLimit(
    "circuit-offers",
    1_000,
    "offers of circuits",
    "hub",
    "remove one first: downburst circuits offers list shows them",
    "each plan weighs those to the sites of its feed",
)
CIRCUIT_PROVIDERS = RowLimit(
    "circuit-providers",
    50,
    "providers of circuits",
    "hub",
    "remove one first: downburst circuits providers list shows them",
    "each is asked for its list of reservations every minute",
)
DEMAND_ORDERS = Newest(
    "demand-orders",
    50_000,
    "ended orders of circuits",
    "hub",
    "a month of one order a minute",
)
NSI_CONNECTIONS_OF_SUBJECT = RowLimit(
    "nsi-connections-of-subject",
    200,
    "connections that have not ended",
    "requester's certificate",
    "terminate some first",
    "the answer to a query of all stays below a megabyte",
)
NSI_CONNECTIONS = RowLimit(
    "nsi-connections",
    2_000,
    "connections of requesters that have not ended",
    "hub",
    "wait until some have ended",
    "each is a circuit",
)
NSI_ENDED = Newest(
    "nsi-ended-connections-of-subject",
    200,
    "ended connections",
    "requester's certificate",
    "a requester that lost an answer looks for its connection within minutes",
)
NSI_CORRELATIONS = Newest(
    "nsi-correlations-of-subject",
    10_000,
    "correlation ids of requests",
    "requester's certificate",
    "a repeated request comes within minutes, and no requester makes ten a second",
)
NSI_REPLIES = Newest(
    "nsi-replies-of-connection",
    100,
    "replies and notifications",
    "connection",
    "a requester that lost some asks for the last ones",
)
EXCEPTIONS_OF_SITE = Newest(
    "exceptions-of-site",
    250_000,
    "rejected and expired products",
    "site",
    "forty megabytes; a site can reject every product of its feeds. The sums count all of them",
)
PLANS_OF_FEED = Newest(
    "plans-of-feed",
    5_000,
    "plans",
    "feed",
    "months of changes; totals of older plans are kept",
)
LEGS = Newest("legs", 10_000, "numbers of legs", "hub", "the database remembers the last; rows are for people")
