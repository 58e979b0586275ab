"""Who asks: the caller behind a token, a session or nothing."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hmac import compare_digest
from weakref import WeakValueDictionary

from downburst.domain.access import (
    LOCAL,
    LOCAL_PREFIX,
    SCOPES_OF,
    SESSION_PREFIX,
    TOKEN_PREFIX,
    Caller,
    Role,
    Scope,
    User,
    hashed,
)
from downburst.foundation.clock import Clock
from downburst.foundation.errors import DownburstError, LedgerAway, NotSignedIn, TooMany
from downburst.ledger import Ledger, Transaction
from downburst.network.addresses import network_of
from downburst.settings.limits import LimitSettings
from downburst_api.border.hashing import Hashing
from downburst_api.border.rate_limits import Limit


@dataclass(frozen=True, slots=True)
class Shown:
    """What a request shows of its sender."""

    bearer: str | None
    cookie: str | None
    peer: str


class Gate:
    """Knows callers by what they show; asks the ledger at most each `REMEMBERED_S` for the same one."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        *,
        local_token: str = "",
        without_login: str = "nothing",
        limits: LimitSettings | None = None,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._local_token = local_token
        self._nobody = Caller("nobody", None, _WITHOUT_LOGIN[without_login])
        self._known: OrderedDict[str, tuple[Caller | None, float]] = OrderedDict()
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        limits = limits or LimitSettings()
        self.nobodys = _steady(
            clock, limits.requests_per_minute_without_login, "requests without a login from this address"
        )
        self.callers = _steady(clock, limits.requests_per_minute, "requests of this user")
        self.hashing = Hashing()
        self.wrong = Limit(clock, per_minute=30, burst=30, what="wrong tokens from this address")
        self.requests = Limit(clock, per_minute=0.1, burst=6, what="requests for access from this address")
        self.sign_ins_by_peer = Limit(clock, per_minute=6, burst=30, what="failed sign-ins from this address")
        self.sign_ins_by_name = Limit(clock, per_minute=1, burst=8, what="failed sign-ins of this user")

    async def caller(self, shown: Shown) -> Caller:
        """Who shows this; a token that is not known is refused, a session that has ended is nobody's."""
        if shown.bearer is not None:
            return replace(await self._by_bearer(shown.bearer, shown.peer), peer=shown.peer)
        if shown.cookie is not None and shown.cookie.startswith(SESSION_PREFIX):
            found = await self._by_secret(shown.cookie)
            if found is not None:
                return replace(found, peer=shown.peer, by_cookie=True)
        return replace(self._nobody, peer=shown.peer)

    def forget(self) -> None:
        """Asks the ledger again about everybody: users or tokens have changed."""
        self._known.clear()

    def attempt(self, peer: str, name: str) -> None:
        """Counts a try with a password, or refuses it; counted before it is judged, whatever else comes in then."""
        peer = network_of(peer)
        self.sign_ins_by_peer.take(peer)
        try:
            self.sign_ins_by_name.take(name)
        except TooMany:
            self.sign_ins_by_peer.give_back(peer)
            raise

    def take_back(self, peer: str, name: str) -> None:
        """Counts a try less, which was not judged."""
        self.sign_ins_by_peer.give_back(network_of(peer))
        self.sign_ins_by_name.give_back(name)

    def succeed(self, peer: str, name: str) -> None:
        """The try was good: who knows the password may try again as often as before."""
        self.sign_ins_by_peer.give_back(network_of(peer))
        self.sign_ins_by_name.forgive(name)

    async def _by_bearer(self, secret: str, peer: str) -> Caller:
        """Who shows the token. One that was not good before counts as wrong until the ledger has said otherwise."""
        key, peer = hashed(secret), network_of(peer)
        # One after the other where several show the same: a source with many connections is not many guesses.
        async with self._asking.setdefault(key, asyncio.Lock()):
            remembered = self._known.get(key)
            if secret.startswith(LOCAL_PREFIX) or (remembered is not None and remembered[0] is not None):
                found = await self._by_secret(secret)
                if found is not None:
                    return found
            self.wrong.take(peer)
            try:
                found = await self._by_secret(secret)
            except DownburstError:
                self.wrong.give_back(peer)
                raise
        if found is None:
            raise NotSignedIn("the token is not known here, or it was revoked or has expired; create another one")
        self.wrong.give_back(peer)
        return found

    async def _by_secret(self, secret: str) -> Caller | None:
        if secret.startswith(LOCAL_PREFIX):
            same = bool(self._local_token) and compare_digest(secret.encode(), self._local_token.encode())
            return LOCAL_CALLER if same else None
        key, now_s = hashed(secret), self._clock.monotonic_s()
        remembered = self._known.get(key)
        if remembered is not None and now_s < remembered[1]:
            return remembered[0]
        try:
            patience_s = PATIENCE_S if remembered is None else 0.0
            found = await self._ledger.read(lambda tx: _found(tx, secret, key), patience_s=patience_s)
        except LedgerAway:
            if remembered is None:
                raise
            # Sources that were let in before go on while the ledger's server is away; nobody else is let in.
            return remembered[0]
        self._known[key] = (found, now_s + REMEMBERED_S)
        self._known.move_to_end(key)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return found


def _steady(clock: Clock, per_minute: float, what: str) -> Limit:
    """A limit whose burst is a minute's worth."""
    return Limit(clock, per_minute=per_minute, burst=max(1, round(per_minute)), what=what)


def caller_of_user(user: User | None) -> Caller | None:
    """The caller that a signed-in user is; None if the user may not sign in."""
    if user is None or not user.active:
        return None
    return Caller(user.name, user.role, SCOPES_OF[user.role], user.site)


def _found(tx: Transaction, secret: str, key: str) -> Caller | None:
    if secret.startswith(TOKEN_PREFIX):
        token = tx.access.tokens.by_secret(key)
        if token is None or not token.usable_at(tx.clock.now()):
            return None
        scopes = frozenset(token.scopes) & SCOPES_OF[token.role]
        return Caller(f"token {token.number} ({token.name})"[:80], token.role, scopes, token.site)
    if secret.startswith(SESSION_PREFIX):
        found = tx.access.sessions.find(key)
        if found is None:
            return None
        session, user = found
        return LOCAL_CALLER if session.user is None else caller_of_user(user)
    return None


LOCAL_CALLER = Caller(LOCAL, Role.ADMIN, frozenset(Scope))
_WITHOUT_LOGIN: Mapping[str, frozenset[Scope]] = {
    "nothing": frozenset(),
    "latency": frozenset({Scope.LATENCY}),
    "page": frozenset({Scope.LATENCY, Scope.READ}),
}
REMEMBERED_S = 5.0
"""So long another process's change may take to be seen here; changes of this one are seen at once."""
MOST_REMEMBERED = 4096
PATIENCE_S = 10.0
"""A restart of the ledger's server is sat out."""
