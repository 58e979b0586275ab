"""For each limit of the ledger's rows: how one more row is added, so that tests can add too many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Table

from downburst import access_tables, alarm_tables, tables
from downburst.access import AccessRequest, AccessToken, Caller, LinkKind, Role, Scope, User, acting
from downburst.alarms import Receiver, ReceiverKind, Silence
from downburst.circuits import Circuit, CircuitEnd, CircuitState, Port
from downburst.ledger import Book
from downburst.ledger.answers import Answered
from downburst.model import (
    Batch,
    Feed,
    IdFilter,
    LdmAccept,
    LdmSource,
    ProductException,
    Resend,
    Site,
    Subscription,
    Upstream,
)
from factories import EPOCH, SOME_TIME, plan

Add = Callable[[Book, int], object]
HOUR = timedelta(hours=1)
TIMES = 12
"""Rows that are tried of each limit; prepared sites have these numbers."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How to reach one limit."""

    table: Table
    add: Add
    """Adds row number so much, as the hub would."""
    prepare: Callable[[Book], object] = lambda _: None
    besides: int = 0
    """Rows that are in the table beside those of the limit."""
    one_writer: bool = False
    """Whether a single process of a hub adds such rows."""


def site_of(number: int) -> str:
    return f"site-{number}.example"


def _sites(book: Book) -> None:
    for number in range(TIMES):
        book.sites.add(Site(site_of(number)))


def _subscribed(book: Book) -> None:
    _sites(book)
    book.feeds.add(Feed("NGRID"))


def _user(book: Book) -> None:
    book.users.add(User("anna", Role.VIEWER))


def _token(book: Book, number: int, *, of: int = 0) -> None:
    book.tokens.add(site_of(of), f"{number:064}", lifetime=HOUR)


def _ended_token(book: Book, number: int) -> None:
    _token(book, number)
    book.tokens.end_pending(site_of(0))


def _credential(book: Book, number: int) -> None:
    _token(book, number)
    book.tokens.consume(f"{number:064}", f"c{number:063}", peer="192.0.2.1")


def _replacement(book: Book, number: int) -> None:
    book.credentials.replace(site_of(0), f"c{0:063}", f"r{number:063}", peer="192.0.2.1", lifetime=HOUR)


def _enrolled(book: Book) -> None:
    _sites(book)
    _credential(book, 0)


def _resend(book: Book, number: int) -> None:
    wanted = IdFilter(f"^{number}")
    book.resends.add(Resend(0, site_of(0), "NGRID", SOME_TIME, SOME_TIME + HOUR, wanted=wanted))


def _silence(book: Book, number: int, *, by: str = "anna", site: str | None = None) -> None:
    book.silences.add(Silence(0, book.clock.now() + HOUR, by, f"number {number}", site=site))


def _receiver(number: int, owner: str | None = None) -> Receiver:
    return Receiver(f"noc-{number}", ReceiverKind.MAIL, "noc@example.org", owner=owner)


def _access_token(book: Book, number: int, *, by: str = "anna") -> AccessToken:
    now = book.clock.now()
    made = AccessToken(0, "x", f"{number:064}", Role.VIEWER, (Scope.READ,), None, now, by, now + HOUR)
    return book.access_tokens.add(made)


def _ended_access_token(book: Book, number: int) -> None:
    book.access_tokens.revoke(_access_token(book, number).number)


def _request(book: Book, number: int, *, peer: str) -> None:
    asked = AccessRequest(0, f"{number:064}", site_of(number), "University", "ops@example.org", peer=peer)
    book.access_requests.add(asked)


def _key(book: Book, number: int, *, tenant: str) -> None:
    assert book.answers.begin(Answered(f"{number:064}", "r", tenant=tenant)) is None


def _change(book: Book, number: int) -> None:
    with acting(Caller("anna", Role.SITE, frozenset(), site_of(0))):
        book.audit.record("site", number, "changed", after={"number": number})


def _circuit(book: Book, number: int) -> None:
    asked = Circuit(0, f"request-{number}", (CircuitEnd("core"),), 1, 1, SOME_TIME, None, state=CircuitState.ADMITTED)
    book.circuits.add(asked)


def _rejected(book: Book, number: int) -> None:
    lost = ProductException("NGRID", EPOCH, number, site_of(0), "rejected", SOME_TIME)
    book.batches.load(Batch(f"batch-{number}", (), (lost,), ()))


ROWS: Mapping[str, Rows] = {
    "FEEDS": Rows(tables.feeds, lambda book, n: book.feeds.add(Feed(f"F{n}"))),
    "SITES": Rows(tables.sites, lambda book, n: book.sites.add(Site(site_of(n)))),
    "SUBSCRIPTIONS_OF_SITE": Rows(
        tables.subscriptions,
        lambda book, n: book.subscriptions.add(Subscription(0, site_of(0), "NGRID", f"^{n}")),
        _subscribed,
    ),
    "PENDING_TOKENS_OF_SITE": Rows(tables.tokens, _token, _sites),
    "PENDING_TOKENS": Rows(tables.tokens, lambda book, n: _token(book, n, of=n), _sites),
    "ENDED_TOKENS_OF_SITE": Rows(tables.tokens, _ended_token, _sites, besides=1),
    "CREDENTIALS_OF_SITE": Rows(tables.credentials, _credential, _sites),
    "REPLACEMENTS_OF_SITE": Rows(tables.credentials, _replacement, _enrolled, besides=1),
    "ENDED_CREDENTIALS_OF_SITE": Rows(tables.credentials, _replacement, _enrolled, besides=3),
    "RESENDS_OF_SITE": Rows(tables.resends, _resend, _subscribed),
    "WINDOWS_OF_SITE": Rows(
        alarm_tables.silences, lambda book, n: _silence(book, n, by=f"user {n}", site=site_of(0)), _sites
    ),
    "SILENCES_OF_MAKER": Rows(alarm_tables.silences, _silence),
    "SILENCES": Rows(alarm_tables.silences, lambda book, n: _silence(book, n, by=f"user {n}")),
    "RECEIVERS": Rows(alarm_tables.alarm_receivers, lambda book, n: book.alarm_receivers.add(_receiver(n))),
    "RECEIVERS_OF_SITE": Rows(
        alarm_tables.site_receivers, lambda book, n: book.site_receivers.add(_receiver(n, site_of(0))), _sites
    ),
    "USERS": Rows(access_tables.users, lambda book, n: book.users.add(User(f"user{n}", Role.VIEWER))),
    "ACCESS_TOKENS_OF_MAKER": Rows(access_tables.access_tokens, _access_token),
    "ACCESS_TOKENS": Rows(access_tables.access_tokens, lambda book, n: _access_token(book, n, by=f"user {n}")),
    "ENDED_ACCESS_TOKENS": Rows(access_tables.access_tokens, _ended_access_token, besides=1),
    "SESSIONS_OF_USER": Rows(
        access_tables.login_sessions,
        lambda book, n: book.login_sessions.add(f"{n:064}", "anna", lifetime=HOUR),
        _user,
    ),
    "LINKS_OF_USER": Rows(
        access_tables.login_links,
        lambda book, n: book.login_links.add(f"{n:064}", LinkKind.SIGN_IN, lifetime=HOUR, user="anna"),
        _user,
    ),
    "REQUESTS": Rows(access_tables.access_requests, lambda book, n: _request(book, n, peer=f"192.0.2.{n}")),
    "REQUESTS_OF_ADDRESS": Rows(
        access_tables.access_requests, lambda book, n: _request(book, n, peer=f"2001:db8::{n:x}")
    ),
    "KEYS_OF_TENANT": Rows(tables.answers, lambda book, n: _key(book, n, tenant="caller anna")),
    "KEYS_OF_STRANGER": Rows(tables.answers, lambda book, n: _key(book, n, tenant="address 192.0.2.1")),
    "KEYS_OF_STRANGERS": Rows(tables.answers, lambda book, n: _key(book, n, tenant=f"address 192.0.2.{n}")),
    "CHANGES_OF_TENANT": Rows(access_tables.audit, _change),
    "UPSTREAMS": Rows(
        tables.upstreams, lambda book, n: book.upstreams.add(Upstream(f"up-{n}", "hub:7370", "t", ("NGRID",)))
    ),
    "LDM_SOURCES": Rows(
        tables.ldm_sources, lambda book, n: book.ldm_sources.add(LdmSource(f"ldm-{n}", "ANY", ("ldm:388",)))
    ),
    "LDM_ACCEPTS": Rows(
        tables.ldm_accepts, lambda book, n: book.ldm_accepts.add(LdmAccept(0, "ANY", ".*", f"^host-{n}$"))
    ),
    "PORTS": Rows(tables.circuit_ports, lambda book, n: book.ports.add(Port(f"port-{n}", 10**9))),
    "CIRCUITS": Rows(tables.circuits, _circuit),
    "EXCEPTIONS_OF_SITE": Rows(tables.exceptions, _rejected),
    "PLANS_OF_FEED": Rows(tables.plans, lambda book, _: book.plans.append(plan()), one_writer=True),
    "LEGS": Rows(tables.legs, lambda book, n: book.legs.allocate(f"F{n}"), one_writer=True),
}
