"""Runs before every route: finds the caller, applies the route's rule, and names the actor for the audit."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from fastapi import APIRouter, FastAPI, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from downburst.domain.access import LOCAL, SCOPES_OF, Caller, Role, acting
from downburst.domain.access import Scope as Right
from downburst.foundation.errors import DownburstError, NotSignedIn, Refused
from downburst.network.addresses import network_of
from downburst.settings.limits import LimitSettings
from downburst_api.border.authentication import Gate, Shown
from downburst_api.border.bodies import Body
from downburst_api.border.problems import problem, refusal
from downburst_api.border.route_rules import EVERYBODY, RULES, Holds, Own, Rule
from downburst_api.border.tenants import Tenants
from downburst_api.border.values import check_body, check_values, unbounded


def install(app: FastAPI, gate: Gate, limits: LimitSettings, routers: Sequence[APIRouter]) -> None:
    """Guards the application; refuses to start with a route that has no rule, or a rule that has no route."""
    known = set(_routes(app, *routers))
    without, idle = sorted(known - RULES.keys()), sorted(RULES.keys() - known)
    if without or idle:
        raise RuntimeError(f"routes without a rule: {without}; rules without a route: {idle}")
    unclear = sorted(route for route, rule in RULES.items() if not rule.is_complete)
    if unclear:
        raise RuntimeError(f"rules without the objects that a site's administrator may name: {unclear}")
    if endless := unbounded(routers):
        raise RuntimeError(f"numbers without bounds: {endless}")
    app.add_middleware(Guard, gate=gate, limits=limits)


def caller_of(request: Request) -> Caller:
    """The caller of a request; every request that reaches a route has one."""
    caller: Caller = request.scope["downburst_caller"]
    return caller


class Guard:
    """The middleware; a request for a route outside the table is refused before the application sees it."""

    def __init__(self, app: ASGIApp, gate: Gate, limits: LimitSettings) -> None:
        self._app = app
        self._gate = gate
        self._limits = limits
        self._tenants = Tenants(limits)
        self._rules = [(method, compile_path(path)[0], rule) for (method, path), rule in RULES.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forwards a request, or answers it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = Body(scope, receive)
        sending = body.closing(_with_headers(scope, send))
        with ExitStack() as held:
            try:
                caller = await self._admitted(scope, body, held)
            except DownburstError as error:
                await refusal(error)(scope, body.receive, sending)
                return
            except _NoRoute as error:
                await error.answer(scope, body.receive, sending)
                return
            with acting(caller):
                await self._app(scope, body.receive, sending)

    async def _admitted(self, scope: Scope, body: Body, held: ExitStack) -> Caller:
        """The caller of a permitted request, with its body read and counted against a budget."""
        rule, path = self._rule(scope)
        check_values(scope, path)
        caller = await self._caller(scope, rule)
        scope["downburst_caller"] = caller
        if rule is None:
            rule = EVERYBODY
        else:
            self._limit(caller, rule)
            if caller.by_cookie and scope["method"] not in _SAFE:
                _check_same_origin(scope)
            _check(rule, caller, scope, path)
        held.enter_context(self._tenants.holding(rule, caller, body))
        if rule.holds is not Holds.UPLOAD:
            check_body(await body.read(most_bytes=self._tenants.most_bytes(caller), within_s=self._limits.body_s))
        return caller

    async def _caller(self, scope: Scope, rule: Rule | None) -> Caller:
        """The caller by the headers, or else by a token in the address, where the rule admits one that only reads."""
        shown = shown_by(scope)
        token = _token_in_query(scope) if rule is not None and rule.token_in_query else None
        if token is None or shown.bearer is not None:
            return await self._gate.caller(shown)
        caller = await self._gate.caller(replace(shown, bearer=token, cookie=None))
        if not caller.scopes <= SCOPES_OF[Role.VIEWER]:
            raise Refused(
                "this token may do more than read, and addresses are stored and logged on their way; create one for "
                "this purpose: downburst tokens add calendar --role viewer --scope details"
            )
        return caller

    def _rule(self, scope: Scope) -> tuple[Rule | None, dict[str, str]]:
        """The rule and the parameters of the path; no rule for the page's files, which hold no secrets."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        path, other_method = scope["path"], False
        for ruled, pattern, rule in self._rules:
            if (match := pattern.match(path)) is not None:
                if ruled == method:
                    return rule, match.groupdict()
                other_method = True
        if other_method:
            raise _NoRoute(scope, 405, "Method Not Allowed")
        if path.startswith(_GUARDED):
            raise _NoRoute(scope, 404, "Not Found")
        if method != "GET":
            raise _NoRoute(scope, 405, "Method Not Allowed")
        return None, {}

    def _limit(self, caller: Caller, rule: Rule) -> None:
        if not caller.known:
            limit = self._gate.files if rule.is_file_for_all else self._gate.nobodys
            limit.take(network_of(caller.peer))
        elif caller.name != LOCAL and rule.scope is not Right.INGEST:
            self._gate.callers.take(caller.name)


def _routes(app: FastAPI, *routers: APIRouter) -> Iterator[tuple[str, str]]:
    """Method and path of all routes; `GET /` represents the page's files."""
    yield "GET", "/"
    for owner in (app.router, *routers):
        for route in owner.routes:
            if isinstance(route, Route):
                yield from ((method, route.path) for method in route.methods or () if method != "HEAD")


class _NoRoute(Exception):
    def __init__(self, scope: Scope, status: int, title: str) -> None:
        detail = f"{scope['method']} {scope['path']}: {title}; /docs lists all paths"
        self.answer = problem(status, title=title, detail=detail, code=title.lower().replace(" ", "-"))


def shown_by(scope: Scope) -> Shown:
    """The credentials and the address that a request shows."""
    headers = Headers(scope=scope)
    kind, _, value = headers.get("authorization", "").partition(" ")
    bearer = value.strip() if kind.lower() == "bearer" else None
    client = scope.get("client")
    return Shown(bearer, _cookie(headers, cookie_name(scope)), client[0] if client else "")


def _token_in_query(scope: Scope) -> str | None:
    given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
    return given[0] if len(given) == 1 else None


def cookie_name(scope: Scope) -> str:
    """The session cookie's name: browsers send cookies to all ports of a host, so the port is part of the name."""
    port = urlsplit(f"//{Headers(scope=scope).get('host', '')}").netloc.rpartition(":")[2]
    return f"downburst_{port}" if port.isdecimal() else "downburst"


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return found.value if found else None


def _check(rule: Rule, caller: Caller, scope: Scope, path: dict[str, str]) -> None:
    allowed = rule.scope is None or caller.may(rule.scope)
    if allowed and (caller.known or not rule.known):
        return
    if not caller.known:
        raise NotSignedIn(
            "sign in first: on the page, with `downburst login`, or with a token in DOWNBURST_TOKEN; "
            "commands on the hub's machine need none if they run as the hub's user"
        )
    if caller.site is None or not caller.may(Right.OWN) or not _is_own(rule, caller.site, scope, path):
        needed = str(rule.scope)
        raise Refused(
            f"{caller.name} may not do this: it needs the right `{needed}`; ask an administrator", needs=needed
        )


def _is_own(rule: Rule, site: str, scope: Scope, path: dict[str, str]) -> bool:
    if rule.own is Own.QUERY:
        return _narrow(scope, site)
    return rule.own is Own.FILTERED or (rule.own is Own.PATH and path.get("site") == site)


def _narrow(scope: Scope, site: str) -> bool:
    """Fills in the parameter `site`; one that names another site is refused."""
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    if given.get("site", [site]) != [site]:
        return False
    scope["query_string"] = urlencode({**given, "site": site}, doseq=True).encode("latin-1")
    return True


def _check_same_origin(scope: Scope) -> None:
    """Refuses a change from a foreign page: a browser sends its cookie with every request, whichever page made it."""
    headers = Headers(scope=scope)
    fetched_from = headers.get("sec-fetch-site")
    if fetched_from is not None:
        same = fetched_from == "same-origin"
    else:
        same = urlsplit(headers.get("origin", "")).netloc == headers.get("host", "")
    if not same:
        raise Refused("this request comes from a page other than the hub's own; repeat it on the hub's page")


def _with_headers(scope: Scope, send: Send) -> Send:
    """Adds the headers by which browsers protect the page's users."""
    is_api = scope["path"].startswith(_GUARDED)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SECURE.items():
                headers.setdefault(name, value)
            headers.setdefault("content-security-policy", _POLICY)
            if is_api:
                headers.setdefault("cache-control", "no-store")
            if scope.get("scheme") == "https":
                headers.setdefault("strict-transport-security", "max-age=31536000")
        await send(message)

    return sending


_SAFE = frozenset({"GET", "HEAD"})
_GUARDED = ("/v1", "/metrics", "/healthz", "/livez", "/readyz", "/docs", "/openapi.json")
_SECURE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
