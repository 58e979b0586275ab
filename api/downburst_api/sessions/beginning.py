"""Sessions: their beginning, whatever way a user signed in, and their cookie."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from downburst.domain.access import SESSION_PREFIX, Caller, Session, User, acting, hashed, new_secret
from downburst.foundation.errors import DownburstError
from downburst.ledger import Transaction
from downburst_api.border.authentication import LOCAL_CALLER, caller_of_user
from downburst_api.border.authorization import cookie_name, shown_by
from downburst_api.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Begun:
    """A session that has just begun."""

    secret: str
    caller: Caller
    lifetime: timedelta
    expires_at: datetime


async def begin_session(hub: Runtime, request: Request, user: User | None, *, hours: float) -> Begun:
    """Begins a session of a user, or of the hub's machine; records it in the audit."""
    secret, lifetime = new_secret(SESSION_PREFIX), timedelta(hours=hours)
    caller = LOCAL_CALLER if user is None else caller_of_user(user)
    if caller is None:
        raise DownburstError("a user who may not sign in signed in")

    def keep(tx: Transaction) -> Session:
        by = {} if user is None or user.is_local else {"issuer": user.issuer}
        tx.access.audit.record("session", caller.name, "signed in", after={"role": caller.role, **by})
        return tx.access.sessions.add(hashed(secret), None if user is None else user.name, lifetime=lifetime)

    with acting(Caller(caller.name, caller.role, caller.scopes, caller.site, peer=shown_by(request.scope).peer)):
        session = await hub.ledger.write(keep)
    return Begun(secret, caller, lifetime, session.expires_at)


def keep_in_browser(answer: Response, request: Request, begun: Begun) -> None:
    """Sets the cookie of a session, which pages can't read and other sites can't send."""
    answer.set_cookie(
        cookie_name(request.scope),
        begun.secret,
        max_age=round(begun.lifetime.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def rights(caller: Caller) -> dict[str, Any]:
    """The members of the contract's `Rights`."""
    return {
        "user": caller.name if caller.known else None,
        "role": caller.role,
        "site": caller.site,
        "scopes": sorted(caller.scopes),
    }
