"""Authentication: the caller behind a token, a session, or neither."""

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
    """The credentials and the address that a request shows."""

    bearer: str | None
    cookie: str | None
    peer: str


class Gate:
    """Finds callers by their credentials; reads the ledger at most every `REMEMBERED_S` for the same one."""

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
        self.files = _steady(clock, limits.files_per_minute_without_login, "published files for this address")
        self.callers = _steady(clock, limits.requests_per_minute, "requests of this user")
        self.hashing = Hashing()
        self.wrong = Limit(clock, per_minute=30, burst=30, what="wrong tokens from this address")
        self.requests = Limit(clock, per_minute=0.1, burst=6, what="requests for access from this address")
        self.sign_ins_by_peer = Limit(clock, per_minute=6, burst=30, what="failed sign-ins from this address")
        self.sign_ins_by_name = Limit(clock, per_minute=1, burst=8, what="failed sign-ins of this user")

    async def caller(self, shown: Shown) -> Caller:
        """The caller with these credentials; an unknown token is refused, an ended session counts as no login."""
        if shown.bearer is not None:
            return replace(await self._by_bearer(shown.bearer, shown.peer), peer=shown.peer)
        if shown.cookie is not None and shown.cookie.startswith(SESSION_PREFIX):
            found = await self._by_secret(shown.cookie)
            if found is not None:
                return replace(found, peer=shown.peer, by_cookie=True)
        return replace(self._nobody, peer=shown.peer)

    def forget(self) -> None:
        """Forgets all remembered callers, as users or tokens have changed; the ledger is read again."""
        self._known.clear()

    def attempt(self, peer: str, name: str) -> None:
        """Counts an attempt to sign in, or refuses it; counted before the check, so that concurrent ones count."""
        peer = network_of(peer)
        self.sign_ins_by_peer.take(peer)
        try:
            self.sign_ins_by_name.take(name)
        except TooMany:
            self.sign_ins_by_peer.give_back(peer)
            raise

    def take_back(self, peer: str, name: str) -> None:
        """Uncounts an attempt that was not checked."""
        self.sign_ins_by_peer.give_back(network_of(peer))
        self.sign_ins_by_name.give_back(name)

    def succeed(self, peer: str, name: str) -> None:
        """Records a successful sign-in: the user's name gets its full number of attempts back."""
        self.sign_ins_by_peer.give_back(network_of(peer))
        self.sign_ins_by_name.forgive(name)

    async def _by_bearer(self, secret: str, peer: str) -> Caller:
        """The caller with this token. A token not known as valid counts as wrong until the ledger confirms it."""
        key, peer = hashed(secret), network_of(peer)
        # Requests with the same token go one after the other: a source with many connections is not many guesses.
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
            # Remembered sources go on while the ledger's server is away; no others are admitted.
            return remembered[0]
        self._known[key] = (found, now_s + REMEMBERED_S)
        self._known.move_to_end(key)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        return found


def _steady(clock: Clock, per_minute: float, what: str) -> Limit:
    """A limit with a burst of one minute's rate."""
    return Limit(clock, per_minute=per_minute, burst=max(1, round(per_minute)), what=what)


def caller_of_user(user: User | None) -> Caller | None:
    """The caller for a signed-in user; None if the user may not sign in."""
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
"""Delay until another process's change is seen here; changes of this process are seen immediately."""
MOST_REMEMBERED = 4096
PATIENCE_S = 10.0
"""Long enough to wait out a restart of the ledger's server."""
