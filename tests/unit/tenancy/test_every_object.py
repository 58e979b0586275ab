"""Every kind of caller asks every route for objects of its own site and of another, and the rule decides.

The cases come from the table of routes. A route without a sample below fails, and so does one whose rule omits the
tenants' objects that it names. An answer to a site's administrator never holds a word of another site.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.domain.access import SCOPES_OF, SESSION_PREFIX, AccessRequest, AccessToken, Role, Scope, User, hashed
from downburst.domain.alarms import Objective, Receiver, ReceiverKind, Silence
from downburst.domain.feeds import Feed
from downburst.domain.probes import ProbeSchedule
from downburst.domain.probes.ceilings import CeilingSide, ProbeCeiling
from downburst.domain.receipts import ProductException
from downburst.domain.relays.siblings import SiblingExchange
from downburst.domain.resends import Resend
from downburst.domain.sites import Place, Site
from downburst.domain.subscriptions import Limit, Subscription
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.probes.probes import ProbeFilter
from downburst.settings.access import AccessSettings
from downburst_api.app import create_app
from downburst_api.border.route_rules import RULES, Holds, Object, Own, Rule
from downburst_api.overview import stream
from factories import AUTHORIZATION, EPOCH, probe_request, runtime, sketch_row

SECRET = "sesame"
"""A word in everything that belongs to the other site alone."""


@dataclass(frozen=True)
class Names:
    """The objects that a request names; a variant names another tenant's object."""

    site: str = "alpha.example"
    feed: str = "ALPHA"
    product: str = "alpha-1"
    user: str = "adm-alpha"
    receiver: str = "noc-alpha"
    numbers: Mapping[str, int] = field(default_factory=dict)
    """Numbers of the site's subscription, silence, resend and so on, by the name in the path."""


@dataclass
class World:
    """Two sites with one shared feed and one feed each; one of them may take only a part of the shared feed."""

    client: httpx.AsyncClient
    published: httpx.AsyncClient
    ledger: Ledger
    own: Names
    foreign: Names

    def variants(self, route: tuple[str, str]) -> Iterator[tuple[Object, Names]]:
        """Other tenants' objects that can be named to a route."""
        for one in RULES[route].objects or ():
            if one is Object.SITE:
                yield one, replace(self.own, site=self.foreign.site)
            elif one is Object.FEED:
                yield one, replace(self.own, feed=self.foreign.feed, product=self.foreign.product)
            elif one is Object.LIMIT:
                yield one, replace(self.own, feed="SHARED", product=f"{SECRET}-beyond")
            elif one is Object.USER:
                yield one, replace(self.own, user=self.foreign.user)
            else:
                yield one, replace(self.own, numbers=self.foreign.numbers, receiver=self.foreign.receiver)

    async def ask(self, caller: str, route: tuple[str, str], names: Names) -> httpx.Response:
        method, path = route
        client = self.published if caller == PUBLISHED else self.client
        return await client.request(method, _filled(path, names), headers=HEADERS[caller], **_sample(route, names))

    def of_the_other_site(self) -> Any:
        """Everything in the ledger about the other site."""
        site = self.foreign.site
        with self.ledger.transaction(writes=False) as tx:
            return (
                tx.sites.find(site),
                tx.subscriptions.of_site(site),
                tx.alerting.silences.of_site(site),
                tx.alerting.site_receivers.of(site),
                tx.enrolment.tokens.of(site),
                tx.enrolment.credentials.of(site),
                tx.resends.newest(site=site),
                tx.access.users.find(self.foreign.user),
                tx.measured.probing.probes.newest(ProbeFilter(site=site)),
                tx.measured.probing.ceilings.of(site),
                tx.fleet.siblings.find(site),
                [one for one in tx.alerting.objectives.all() if one.site == site],
                tx.feeds.find(self.foreign.feed),
            )


@pytest.fixture
async def world(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    with ledger.transaction() as tx:
        own, foreign = _fill(tx, clock)
        _callers(tx, clock)
    made, node = runtime(tmp_path / "hub", ledger, clock)
    opened, _ = runtime(tmp_path / "open", ledger, clock, access=AccessSettings(without_login="latency"))
    await node.refresh()
    monkeypatch.setattr(stream, "overviews", _no_overviews)
    monkeypatch.setattr("downburst_api.sessions.routes.is_password", lambda *_: False)
    transports = [
        httpx.ASGITransport(create_app(one), raise_app_exceptions=False, client=(peer, 1))
        for one, peer in ((made, "192.0.2.1"), (opened, "192.0.2.2"))
    ]
    async with (
        httpx.AsyncClient(transport=transports[0], base_url="http://hub") as client,
        httpx.AsyncClient(transport=transports[1], base_url="http://hub") as published,
    ):
        for feed, product in PRODUCTS:
            await client.put(f"/v1/feeds/{feed}/products/{product}", content=product.encode(), headers=AUTHORIZATION)
        yield World(client, published, ledger, own, foreign)


async def _no_overviews(*_: object) -> AsyncIterator[None]:
    return
    yield


def test_every_route_has_a_rule_for_its_objects_and_a_sample() -> None:
    """Every route open to a site's administrator or to a stranger declares whose objects it names."""
    reached = {route for route, rule in RULES.items() if rule.own is not Own.NEVER or rule.scope is None}
    assert {route for route in reached if RULES[route].objects is None} == set()
    writing = {(method, path) for method, path in reached if method in ("POST", "PUT", "PATCH")}
    assert writing - SAMPLES.keys() == set(), "say in SAMPLES how these are asked"


def test_what_the_path_names_is_an_object_of_the_rule() -> None:
    named = {"{site}": Object.SITE, "{feed}": Object.FEED, "{user}": Object.USER}
    for (method, path), rule in RULES.items():
        if rule.own is Own.NEVER:
            continue
        for part, wanted in named.items():
            assert part not in path or wanted in (rule.objects or ()), f"{method} {path}: {wanted}"
        if any(part in path for part in ("{number}", "{subscription}", "{receiver}", "{resend}", "{probe}")):
            assert Object.ITEM in (rule.objects or ()), f"{method} {path}"


def later(*callers: str) -> list[object]:
    """Callers that `make test-all` tries: each asks for every route."""
    return [pytest.param(caller, marks=pytest.mark.all) for caller in callers]


@pytest.mark.parametrize("caller", ["site session", *later("site token")])
async def test_a_site_gets_what_is_its_own_and_not_a_word_of_another(world: World, caller: str) -> None:
    before, asked = world.of_the_other_site(), 0
    # Routes that remove something come last, so that all others find it.
    for route in sorted(RULES, key=_taking_away_last):
        rule = RULES[route]
        for what, names in world.variants(route):
            answer = await world.ask(caller, route, names)
            told = f"{route} for {what} of another: {answer.status_code} {answer.text}"
            assert SECRET not in _said(answer, names), told
            if _is_open(rule):
                assert answer.status_code in (403, 404) or _tells_nothing(answer, world, names), told
            else:
                assert _is_refused(answer), told
            asked += 1
        answer = await world.ask(caller, route, world.own)
        told = f"{route}: {answer.status_code} {answer.text}"
        assert SECRET not in _said(answer, world.own), told
        assert world.foreign.site not in _said(answer, world.own), told
        assert world.foreign.feed not in _said(answer, world.own), told
        assert _is_refused(answer) is not _may(caller, rule), told
        assert answer.status_code < 500 or answer.status_code == 503, told
        asked += 1
        assert world.of_the_other_site() == before, f"{route} changed what is another's"
    assert asked > len(RULES) + 40


@pytest.mark.parametrize("caller", ["nobody", "revoked token", *later("nobody, latency published", "expired token")])
async def test_who_is_not_known_gets_what_is_published_and_not_a_word_of_any_site(world: World, caller: str) -> None:
    before = world.of_the_other_site()
    for route, rule in RULES.items():
        answer = await world.ask(caller, route, world.foreign)
        told = f"{route}: {answer.status_code} {answer.text}"
        refused = _is_refused(answer)
        assert refused is not _may(caller, rule), told
        if rule.scope is not Scope.LATENCY and route[1] not in ("/docs", "/openapi.json", "/"):
            assert SECRET not in _said(answer, world.foreign), told
        assert answer.status_code < 500 or answer.status_code == 503, told
        assert world.of_the_other_site() == before, route


@pytest.mark.parametrize(
    "caller", ["viewer", "ingest token", *later("operator", "admin", "metrics token", "viewer token", "local")]
)
async def test_who_has_no_site_is_let_through_by_rights_alone(world: World, caller: str) -> None:
    for route in sorted(RULES, key=_taking_away_last):
        objects = [world.own, world.foreign] if "{" in route[1] else [world.foreign]
        for names in objects:
            answer = await world.ask(caller, route, names)
            told = f"{route}: {answer.status_code} {answer.text}"
            assert _is_refused(answer) is not _may(caller, RULES[route]), told
            assert answer.status_code < 500 or answer.status_code == 503, told


def _taking_away_last(route: tuple[str, str]) -> tuple[bool, bool, str, str]:
    """Sorts removals last, so that the other routes find their objects; the caller signs out at the very end."""
    return route == ("DELETE", "/v1/session"), route[0] == "DELETE", route[1], route[0]


def _may(caller: str, rule: Rule) -> bool:
    """True if the rule admits the caller, to its own objects if it has any."""
    scopes = RIGHTS[caller]
    if caller in ("expired token", "revoked token"):
        return False
    if rule.scope is None:
        return not rule.known or not caller.startswith("nobody")
    return rule.scope in scopes or (Scope.OWN in scopes and caller.startswith("site") and rule.own is not Own.NEVER)


def _is_open(rule: Rule) -> bool:
    return rule.scope is None or rule.own is not Own.NEVER


def _is_refused(answer: httpx.Response) -> bool:
    """True if the guard refused; a refusal by the route itself counts as an answer."""
    problem = answer.headers.get("content-type") == "application/problem+json"
    body = answer.json() if problem else {}
    if answer.status_code == 429 and "wrong tokens" in body["detail"]:
        return True
    return "needs" in body or (answer.status_code == 401 and "password is wrong" not in body["detail"])


def _tells_nothing(answer: httpx.Response, world: World, names: Names) -> bool:
    """True for a list that a foreign name leaves empty, or a form that ignores the name."""
    said = _said(answer, names)
    return (
        answer.status_code in (*range(500), 503) and world.foreign.site not in said and world.foreign.feed not in said
    )


def _said(answer: httpx.Response, names: Names) -> str:
    """The text of the answer, without the names in the request."""
    said = answer.text
    for echo in (names.site, names.feed, names.product, names.user, names.receiver):
        said = said.replace(echo, "...")
    return said


def _filled(path: str, names: Names) -> str:
    filled = path.replace("{product_id:anytext}", names.product).replace("{site}", names.site)
    filled = filled.replace("{feed}", names.feed).replace("{user}", names.user).replace("{receiver}", names.receiver)
    for name in ("number", "subscription", "resend", "circuit", "probe"):
        key = "silence" if name == "number" and "silences" in path else name
        filled = filled.replace(f"{{{name}}}", str(names.numbers.get(key, 1)))
    for name in ("port", "upstream", "source", "profile"):
        filled = filled.replace(f"{{{name}}}", "x")
    return filled


def _sample(route: tuple[str, str], names: Names) -> dict[str, Any]:
    """A meaningful request, whose answer depends on rights alone."""
    made = SAMPLES.get(route, lambda _: {})(names)
    if RULES[route].holds is Holds.UPLOAD:
        return {"content": b"bytes"}
    own_by_query = RULES[route].own in (Own.QUERY, Own.FILTERED) and "{site}" not in route[1]
    if own_by_query:
        # The guard fills in the site and refuses a request that names another one.
        named = {"site": names.site} if Object.SITE in (RULES[route].objects or ()) else {}
        made = made | {"params": {**made.get("params", {}), **named}}
    return made if made.get("params") or "json" in made else {}


def _fill(tx: Transaction, clock: FakeClock) -> tuple[Names, Names]:
    for feed in ("SHARED", "ALPHA", "BRAVO"):
        tx.feeds.add(Feed(feed))
    tx.sites.add(
        Site(
            "alpha.example",
            organisation="Alpha",
            allow=("SHARED", "ALPHA"),
            limits=(Limit("SHARED", "^alpha"),),
        )
    )
    text = f"{SECRET} of the other"
    tx.sites.add(Site("bravo.example", organisation=text, contact=text, place=Place(text), allow=("SHARED", "BRAVO")))
    own = _objects(tx, clock, Names(), "mine")
    foreign = Names("bravo.example", "BRAVO", f"{SECRET}-1", "adm-bravo", "noc-bravo")
    foreign = _objects(tx, clock, foreign, text)
    wanted = AccessRequest(0, hashed("dbq_x"), "charlie.example", text, text, note=text, peer="192.0.2.9")
    tx.access.requests.add(wanted)
    return own, foreign


def _objects(tx: Transaction, clock: FakeClock, names: Names, text: str) -> Names:
    """One of each kind for a site."""
    now, site = clock.now(), names.site
    for feed in (names.feed, "SHARED"):
        wish = tx.subscriptions.add(Subscription(0, site, feed, pattern=text))
    silence = tx.alerting.silences.add(Silence(0, now + timedelta(hours=1), text, text, site=site))
    receiver = Receiver(
        names.receiver, ReceiverKind.MAIL, f"{text[:4]}{SECRET if SECRET in text else site}@example.edu", owner=site
    )
    tx.alerting.site_receivers.add(receiver)
    resend = tx.resends.add(Resend(0, site, names.feed, now - timedelta(hours=1), now, requested_by=text))
    probe = tx.measured.probing.probes.add(replace(probe_request(site), by=text))
    tx.measured.probing.schedules.add(ProbeSchedule(0, replace(probe_request(site), by=text), 24, now))
    tx.measured.probing.ceilings.put(ProbeCeiling(site, CeilingSide.OPERATOR, 5, None, text))
    tx.fleet.siblings.put(SiblingExchange(site, set_by=text))
    tx.enrolment.tokens.add(site, hashed(f"{site} token"), lifetime=timedelta(hours=1))
    tx.enrolment.tokens.consume(hashed(f"{site} token"), hashed(f"{site} credential"), peer=text)
    tx.access.users.add(User(names.user, Role.SITE, site, password_hash="x"))
    tx.alerting.objectives.put(Objective(names.feed, site, 5))
    tx.measured.exceptions.add(ProductException(names.feed, EPOCH, 1, site, "rejected", now))
    tx.measured.latency.add(sketch_row([1.5], feed=names.feed, site=site, minute=int(now.timestamp() // 60)))
    numbers = {"subscription": wish.id, "silence": silence.number, "resend": resend.id, "probe": probe.id}
    return replace(names, numbers=numbers)


def _callers(tx: Transaction, clock: FakeClock) -> None:
    now = clock.now()
    for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN):
        tx.access.users.add(User(role.value, role, password_hash="x"))
        tx.access.sessions.add(hashed(f"{SESSION_PREFIX}{role}"), role.value, lifetime=timedelta(days=1))
    tx.access.sessions.add(hashed(f"{SESSION_PREFIX}site"), "adm-alpha", lifetime=timedelta(days=1))
    for name, role, scopes in (
        ("site", Role.SITE, SCOPES_OF[Role.SITE]),
        ("viewer", Role.VIEWER, SCOPES_OF[Role.VIEWER]),
        ("ingest", Role.OPERATOR, frozenset({Scope.INGEST})),
        ("metrics", Role.VIEWER, frozenset({Scope.METRICS})),
        ("expired", Role.ADMIN, SCOPES_OF[Role.ADMIN]),
        ("revoked", Role.ADMIN, SCOPES_OF[Role.ADMIN]),
    ):
        ends = now - timedelta(seconds=1) if name == "expired" else now + timedelta(days=1)
        site = "alpha.example" if role is Role.SITE else None
        token = AccessToken(0, name, hashed(f"dba_{name}"), role, tuple(sorted(scopes)), site, now, "test", ends)
        kept = tx.access.tokens.add(token)
        if name == "revoked":
            tx.access.tokens.revoke(kept.number)


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


PUBLISHED = "nobody, latency published"
HEADERS: dict[str, dict[str, str]] = {
    "nobody": {},
    PUBLISHED: {},
    **{role: _bearer(f"{SESSION_PREFIX}{role}") for role in ("viewer", "operator", "admin")},
    "site session": _bearer(f"{SESSION_PREFIX}site"),
    **{f"{name} token": _bearer(f"dba_{name}") for name in ("site", "viewer", "ingest", "metrics")},
    "expired token": _bearer("dba_expired"),
    "revoked token": _bearer("dba_revoked"),
    "local": AUTHORIZATION,
}
RIGHTS: dict[str, frozenset[Scope]] = {
    "nobody": frozenset(),
    PUBLISHED: frozenset({Scope.LATENCY}),
    "viewer": SCOPES_OF[Role.VIEWER],
    "operator": SCOPES_OF[Role.OPERATOR],
    "admin": SCOPES_OF[Role.ADMIN],
    "site session": SCOPES_OF[Role.SITE],
    "site token": SCOPES_OF[Role.SITE],
    "viewer token": SCOPES_OF[Role.VIEWER],
    "ingest token": frozenset({Scope.INGEST}),
    "metrics token": frozenset({Scope.METRICS}),
    "expired token": frozenset(),
    "revoked token": frozenset(),
    "local": frozenset(Scope),
}
PRODUCTS = (
    ("ALPHA", "alpha-1"),
    ("SHARED", "alpha-2"),
    ("SHARED", f"{SECRET}-beyond"),
    ("BRAVO", f"{SECRET}-1"),
)
SAMPLES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/session"): lambda it: {"json": {"user": it.user, "password": "wrong"}},
    ("POST", "/v1/session/link"): lambda _: {"json": {"link": "dbl_wrong", "password": "four words are long"}},
    ("POST", "/v1/session/links"): lambda _: {},
    ("PUT", "/v1/session/password"): lambda _: {"json": {"old": "wrong", "new": "four words are long"}},
    ("POST", "/v1/access-requests"): lambda it: {
        "json": {"site": it.site, "organisation": "x", "contact": "x@x", "feeds": [it.feed]}
    },
    ("POST", "/v1/access-requests/state"): lambda _: {"json": {"secret": "dbq_wrong"}},
    ("POST", "/v1/measurements/archive/{token}"): lambda _: {"json": {}},
    ("PUT", "/v1/measurements/archive/{token}"): lambda _: {"json": {}},
    ("POST", "/v1/feeds/{feed}/pattern-test"): lambda _: {"json": {"pattern": SECRET, "hours": 24}},
    ("PUT", "/v1/sites/{site}/endpoint"): lambda _: {"json": {"organisation": "changed"}},
    ("PUT", "/v1/sites/{site}/probe-ceiling"): lambda _: {"json": {"rate_bps": 7}},
    ("PUT", "/v1/sites/{site}/siblings"): lambda _: {"json": {"upload_bytes_per_second": 7_000}},
    ("POST", "/v1/sites/{site}/silences"): lambda _: {"json": {"minutes": 5}},
    ("POST", "/v1/sites/{site}/alarm-receivers"): lambda it: {
        "json": {"receiver": "new", "kind": "mail", "address": "x@x.example", "feeds": [it.feed]}
    },
    ("POST", "/v1/sites/{site}/alarm-receivers/{receiver}/test"): lambda _: {},
    ("POST", "/v1/sites/{site}/tokens"): lambda _: {},
    ("POST", "/v1/sites/{site}/credentials/replacement"): lambda _: {},
    ("POST", "/v1/sites/{site}/subscriptions"): lambda it: {"json": {"feed": it.feed}},
    ("GET", "/v1/products"): lambda it: {"params": {"feed": it.feed, "since": "30000d"}},
    ("GET", "/v1/products/trace"): lambda it: {"params": {"product": it.product}},
    ("GET", "/v1/volume/history"): lambda it: {"params": {"feed": it.feed}},
    ("GET", "/v1/latency"): lambda it: {"params": {"feed": it.feed}},
    ("GET", "/v1/latency/history"): lambda it: {"params": {"feed": it.feed}},
    ("GET", "/v1/latency/histogram"): lambda it: {"params": {"feed": it.feed}},
    ("GET", "/v1/latency/heat"): lambda it: {"params": {"feed": it.feed}},
    ("GET", "/v1/deliveries"): lambda it: {"params": {"feed": it.feed}},
    ("GET", "/v1/alarms"): lambda it: {"params": {"feed": it.feed, "ended": "true"}},
    ("GET", "/v1/resends"): lambda it: {"params": {"feed": it.feed}},
}
