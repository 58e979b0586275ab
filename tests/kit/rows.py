"""For each limit of the ledger's rows, a way to add one more row, so that tests can exceed the limit."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy import Table

from downburst.domain.access import AccessRequest, AccessToken, Caller, LinkKind, Role, Scope, User, acting
from downburst.domain.alarms import Receiver, ReceiverKind, Silence
from downburst.domain.bridges import Broker, Hole, Wis2Source
from downburst.domain.bridges.publishers import Wis2Publisher
from downburst.domain.circuits import Circuit, CircuitEnd, CircuitRequest, CircuitState, Port
from downburst.domain.feeds import Feed
from downburst.domain.measurements import Figure, Measurement, TestPoint, Unit
from downburst.domain.ordering import DemandOrder, Offer, OrderStep, OrderTimes, Provider
from downburst.domain.probes import ProbeSchedule, ProbeState
from downburst.domain.receipts import Batch, ProductException
from downburst.domain.relays import Relay, Segment, Tunnel
from downburst.domain.resends import Resend
from downburst.domain.sites import Site
from downburst.domain.subscriptions import IdFilter, Subscription
from downburst.domain.tcp.profiles import TcpKnobs, TcpProfile
from downburst.domain.topology import Domain
from downburst.domain.upstreams import LdmAccept, LdmSource, Upstream
from downburst.ledger import Transaction, tables
from downburst.ledger.repositories.answers import Answered
from downburst.ledger.tables import access as access_tables
from downburst.ledger.tables import alarms as alarm_tables
from factories import EPOCH, SOME_TIME, plan, probe_request

Add = Callable[[Transaction, int], object]
HOUR = timedelta(hours=1)
TIMES = 12
"""Rows that are tried of each limit; prepared sites have these numbers."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The way to reach one limit."""

    table: Table
    add: Add
    """Adds the row with this number, as the hub would."""
    prepare: Callable[[Transaction], object] = lambda _: None
    besides: int = 0
    """Rows that are in the table beside those of the limit."""
    one_writer: bool = False
    """True if a single process of a hub adds such rows."""


def site_of(number: int) -> str:
    return f"site-{number}.example"


def _sites(tx: Transaction) -> None:
    for number in range(TIMES):
        tx.sites.add(Site(site_of(number)))


def _subscribed(tx: Transaction) -> None:
    _sites(tx)
    tx.feeds.add(Feed("NGRID"))


def _wis2_feed(tx: Transaction) -> None:
    tx.feeds.add(Feed("WIS2"))


def _wis2_source(number: int) -> Wis2Source:
    return Wis2Source(f"wis2-{number}", "WIS2", (Broker("mqtts://one.example"),), ("cache/a/wis2/#",))


def _wis2_publisher(number: int) -> Wis2Publisher:
    broker, record = Broker("mqtts://one.example"), "urn:wmo:md:us-x:synop"
    return Wis2Publisher(f"out-{number}", "WIS2", "us-x", "core/weather", record, broker, "https://hub.example")


def _with_wis2_source(tx: Transaction) -> None:
    _wis2_feed(tx)
    tx.wis2.sources.add(_wis2_source(0))


def _user(tx: Transaction) -> None:
    tx.access.users.add(User("anna", Role.VIEWER))


def _token(tx: Transaction, number: int, *, of: int = 0) -> None:
    tx.enrolment.tokens.add(site_of(of), f"{number:064}", lifetime=HOUR)


def _ended_token(tx: Transaction, number: int) -> None:
    _token(tx, number)
    tx.enrolment.tokens.end_pending(site_of(0))


def _domain(tx: Transaction, number: int) -> None:
    present = tx.planning.topology.get()
    tx.planning.topology.put(replace(present, domains=(*present.domains, Domain(f"domain-{number}"))))


def _ended_probe(tx: Transaction, _: int) -> None:
    probe = tx.measured.probing.probes.add(probe_request(site_of(0)))
    tx.measured.probing.probes.save(replace(probe, state=ProbeState.DONE))


def _credential(tx: Transaction, number: int) -> None:
    _token(tx, number)
    tx.enrolment.tokens.consume(f"{number:064}", f"c{number:063}", peer="192.0.2.1")


def _replacement(tx: Transaction, number: int) -> None:
    tx.enrolment.credentials.replace(site_of(0), f"c{0:063}", f"r{number:063}", peer="192.0.2.1", lifetime=HOUR)


def _enrolled(tx: Transaction) -> None:
    _sites(tx)
    _credential(tx, 0)


def _resend(tx: Transaction, number: int) -> None:
    wanted = IdFilter(f"^{number}")
    tx.resends.add(Resend(0, site_of(0), "NGRID", SOME_TIME, SOME_TIME + HOUR, wanted=wanted))


def _silence(tx: Transaction, number: int, *, by: str = "anna", site: str | None = None) -> None:
    tx.alerting.silences.add(Silence(0, tx.clock.now() + HOUR, by, f"number {number}", site=site))


def _receiver(number: int, owner: str | None = None) -> Receiver:
    return Receiver(f"noc-{number}", ReceiverKind.MAIL, "noc@example.org", owner=owner)


def _access_token(tx: Transaction, number: int, *, by: str = "anna") -> AccessToken:
    now = tx.clock.now()
    made = AccessToken(0, "x", f"{number:064}", Role.VIEWER, (Scope.READ,), None, now, by, now + HOUR)
    return tx.access.tokens.add(made)


def _ended_access_token(tx: Transaction, number: int) -> None:
    tx.access.tokens.revoke(_access_token(tx, number).number)


def _request(tx: Transaction, number: int, *, peer: str) -> None:
    asked = AccessRequest(0, f"{number:064}", site_of(number), "University", "ops@example.org", peer=peer)
    tx.access.requests.add(asked)


def _key(tx: Transaction, number: int, *, tenant: str) -> None:
    assert tx.access.answers.begin(Answered(f"{number:064}", "r", tenant=tenant)) is None


def _change(tx: Transaction, number: int) -> None:
    with acting(Caller("anna", Role.SITE, frozenset(), site_of(0))):
        tx.access.audit.record("site", number, "changed", after={"number": number})


def _circuit(tx: Transaction, number: int) -> None:
    asked = Circuit(0, CircuitRequest(f"request-{number}"), (CircuitEnd("core"),), 1, 1, SOME_TIME, None)
    tx.circuits.add(replace(asked, state=CircuitState.ADMITTED))


def _offer_ends(tx: Transaction) -> None:
    tx.ports.add(Port("core", 10**9))
    tx.ports.add(Port("edge", 10**9, site=site_of(0)))


def _ended_order(tx: Transaction, number: int) -> None:
    times = OrderTimes(SOME_TIME, SOME_TIME + HOUR, ended_at=SOME_TIME)
    order = DemandOrder(number, "campus", "NGRID", site_of(0), 10**7, "a burst is due", times)
    tx.planning.orders.add(replace(order, step=OrderStep.ENDED))


def _provider(number: int) -> Provider:
    nsa = "urn:ogf:network:example.net:2026:nsa"
    return Provider(f"network-{number}", "https://nsi.example.net/soap", nsa, nsa)


def _rejected(tx: Transaction, number: int) -> None:
    lost = ProductException("NGRID", EPOCH, number, site_of(0), "rejected", SOME_TIME)
    tx.measured.batches.load(Batch(f"batch-{number}", (), (lost,), ()))


def _relay(tx: Transaction) -> None:
    tx.fleet.relays.put(Relay("campus", "relay.example.edu:7379"))


def _tunnel(tx: Transaction, number: int) -> None:
    segment = Segment(2_000, 100, "cubic", 10**8)
    ended = Tunnel(None, f"192.0.2.{number}:9", "198.51.100.1:9", "hub:7370", 60.0, 1, 1, 1, segment, segment)
    tx.fleet.relay_log.add("campus", [ended])


ROWS: Mapping[str, Rows] = {
    "FEEDS": Rows(tables.feeds.feeds, lambda tx, n: tx.feeds.add(Feed(f"F{n}"))),
    "SITES": Rows(tables.sites.sites, lambda tx, n: tx.sites.add(Site(site_of(n)))),
    "SUBSCRIPTIONS_OF_SITE": Rows(
        tables.sites.subscriptions,
        lambda tx, n: tx.subscriptions.add(Subscription(0, site_of(0), "NGRID", f"^{n}")),
        _subscribed,
    ),
    "PENDING_TOKENS_OF_SITE": Rows(tables.sites.tokens, _token, _sites),
    "PENDING_TOKENS": Rows(tables.sites.tokens, lambda tx, n: _token(tx, n, of=n), _sites),
    "ENDED_TOKENS_OF_SITE": Rows(tables.sites.tokens, _ended_token, _sites, besides=1),
    "CREDENTIALS_OF_SITE": Rows(tables.sites.credentials, _credential, _sites),
    "REPLACEMENTS_OF_SITE": Rows(tables.sites.credentials, _replacement, _enrolled, besides=1),
    "ENDED_CREDENTIALS_OF_SITE": Rows(tables.sites.credentials, _replacement, _enrolled, besides=3),
    "RESENDS_OF_SITE": Rows(tables.sites.resends, _resend, _subscribed),
    "WINDOWS_OF_SITE": Rows(
        alarm_tables.silences, lambda tx, n: _silence(tx, n, by=f"user {n}", site=site_of(0)), _sites
    ),
    "SILENCES_OF_MAKER": Rows(alarm_tables.silences, _silence),
    "SILENCES": Rows(alarm_tables.silences, lambda tx, n: _silence(tx, n, by=f"user {n}")),
    "RECEIVERS": Rows(alarm_tables.alarm_receivers, lambda tx, n: tx.alerting.receivers.add(_receiver(n))),
    "RECEIVERS_OF_SITE": Rows(
        alarm_tables.site_receivers, lambda tx, n: tx.alerting.site_receivers.add(_receiver(n, site_of(0))), _sites
    ),
    "USERS": Rows(access_tables.users, lambda tx, n: tx.access.users.add(User(f"user{n}", Role.VIEWER))),
    "ACCESS_TOKENS_OF_MAKER": Rows(access_tables.access_tokens, _access_token),
    "ACCESS_TOKENS": Rows(access_tables.access_tokens, lambda tx, n: _access_token(tx, n, by=f"user {n}")),
    "ENDED_ACCESS_TOKENS": Rows(access_tables.access_tokens, _ended_access_token, besides=1),
    "SESSIONS_OF_USER": Rows(
        access_tables.login_sessions,
        lambda tx, n: tx.access.sessions.add(f"{n:064}", "anna", lifetime=HOUR),
        _user,
    ),
    "LINKS_OF_USER": Rows(
        access_tables.login_links,
        lambda tx, n: tx.access.links.add(f"{n:064}", LinkKind.SIGN_IN, lifetime=HOUR, user="anna"),
        _user,
    ),
    "REQUESTS": Rows(access_tables.access_requests, lambda tx, n: _request(tx, n, peer=f"192.0.2.{n}")),
    "REQUESTS_OF_ADDRESS": Rows(
        access_tables.access_requests, lambda tx, n: _request(tx, n, peer=f"2001:db8::{n:x}")
    ),
    "KEYS_OF_TENANT": Rows(tables.processes.answers, lambda tx, n: _key(tx, n, tenant="caller anna")),
    "KEYS_OF_STRANGER": Rows(tables.processes.answers, lambda tx, n: _key(tx, n, tenant="address 192.0.2.1")),
    "KEYS_OF_STRANGERS": Rows(tables.processes.answers, lambda tx, n: _key(tx, n, tenant=f"address 192.0.2.{n}")),
    "CHANGES_OF_TENANT": Rows(access_tables.audit, _change),
    "UPSTREAMS": Rows(
        tables.upstreams.upstreams,
        lambda tx, n: tx.fleet.upstreams.add(Upstream(f"up-{n}", "hub:7370", "t", ("NGRID",))),
    ),
    "LDM_SOURCES": Rows(
        tables.upstreams.ldm_sources, lambda tx, n: tx.ldm.sources.add(LdmSource(f"ldm-{n}", "ANY", ("ldm:388",)))
    ),
    "LDM_ACCEPTS": Rows(
        tables.upstreams.ldm_accepts, lambda tx, n: tx.ldm.accepts.add(LdmAccept(0, "ANY", ".*", f"^host-{n}$"))
    ),
    "WIS2_SOURCES": Rows(tables.bridges.wis2_sources, lambda tx, n: tx.wis2.sources.add(_wis2_source(n)), _wis2_feed),
    "WIS2_PUBLISHERS": Rows(
        tables.bridges.wis2_publishers, lambda tx, n: tx.wis2.publishers.add(_wis2_publisher(n)), _wis2_feed
    ),
    "WIS2_HOLES_OF_SOURCE": Rows(
        tables.bridges.wis2_holes,
        lambda tx, n: tx.wis2.holes.add(Hole("wis2-0", "mqtts://one.example", SOME_TIME, SOME_TIME, f"hole {n}")),
        _with_wis2_source,
    ),
    "TCP_PROFILES": Rows(
        tables.tcp_profiles.tcp_profiles,
        lambda tx, n: tx.fleet.tcp_profiles.put(TcpProfile(f"p-{n}", f"192.0.2.{n}/32", knobs=TcpKnobs("bbr"))),
    ),
    "PROBES_OF_SITE": Rows(
        tables.probes.probes, lambda tx, _: tx.measured.probing.probes.add(probe_request(site_of(0))), _sites
    ),
    "ENDED_PROBES_OF_SITE": Rows(tables.probes.probes, _ended_probe, _sites),
    "PROBE_SCHEDULES_OF_SITE": Rows(
        tables.probes.probe_schedules,
        lambda tx, _: tx.measured.probing.schedules.add(ProbeSchedule(0, probe_request(site_of(0)), 24, SOME_TIME)),
        _sites,
    ),
    "TEST_POINTS": Rows(
        tables.measurements.test_points,
        lambda tx, n: tx.measured.points.add(TestPoint(f"point-{n}", (f"192.0.2.{n}",)), f"{n:064}"),
    ),
    "MEASUREMENTS_OF_POINT": Rows(
        tables.measurements.measurements,
        lambda tx, n: tx.measured.measurements.add(
            Measurement("unl", SOME_TIME, "latency", "a", "b", f"run-{n}", Figure(1.0, Unit.MICROSECONDS))
        ),
        lambda tx: tx.measured.points.add(TestPoint("unl", ("ps.unl.edu",)), "0" * 64),
    ),
    "RELAYS": Rows(
        tables.relays.relays, lambda tx, n: tx.fleet.relays.put(Relay(f"relay-{n}", "relay.example.edu:7379"))
    ),
    "LOG_OF_RELAY": Rows(tables.relays.relay_log, _tunnel, _relay),
    "PORTS": Rows(tables.circuits.circuit_ports, lambda tx, n: tx.ports.add(Port(f"port-{n}", 10**9))),
    "TOPOLOGY_ELEMENTS": Rows(tables.topology.topology_elements, _domain, one_writer=True),
    "CIRCUITS": Rows(tables.circuits.circuits, _circuit),
    "CIRCUIT_OFFERS": Rows(
        tables.ordering.circuit_offers,
        lambda tx, n: tx.planning.offers.put(Offer(f"offer-{n}", "core", ("edge",), (10**7,))),
        _offer_ends,
    ),
    "CIRCUIT_PROVIDERS": Rows(
        tables.ordering.circuit_providers, lambda tx, n: tx.planning.providers.put(_provider(n))
    ),
    "DEMAND_ORDERS": Rows(tables.ordering.demand_orders, _ended_order, one_writer=True),
    "NSI_CONNECTIONS_OF_SUBJECT": Rows(
        tables.nsi.nsi_connections, lambda tx, n: tx.planning.connections.add(f"c{n}", "CN=a", {}), one_writer=True
    ),
    "NSI_CONNECTIONS": Rows(
        tables.nsi.nsi_connections,
        lambda tx, n: tx.planning.connections.add(f"c{n}", f"CN={n}", {}),
        one_writer=True,
    ),
    "NSI_ENDED": Rows(
        tables.nsi.nsi_connections, lambda tx, n: tx.planning.connections.end(f"c{n}", "CN=a", {}), one_writer=True
    ),
    "NSI_CORRELATIONS": Rows(
        tables.nsi.nsi_correlations, lambda tx, n: tx.planning.connections.seen("CN=a", f"id-{n}"), one_writer=True
    ),
    "NSI_REPLIES": Rows(
        tables.nsi.nsi_replies,
        lambda tx, _: tx.planning.connections.reply("c", {}, is_notice=False, reply_to=None),
        lambda tx: tx.planning.connections.add("c", "CN=a", {}),
        one_writer=True,
    ),
    "EXCEPTIONS_OF_SITE": Rows(tables.receipts.exceptions, _rejected),
    "PLANS_OF_FEED": Rows(tables.feeds.plans, lambda tx, _: tx.planning.plans.append(plan()), one_writer=True),
    "LEGS": Rows(tables.feeds.legs, lambda tx, n: tx.planning.legs.allocate(f"F{n}"), one_writer=True),
}
