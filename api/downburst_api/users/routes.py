"""Routes of administrators: users, access tokens, and the audit log."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Query

from downburst.domain.access import (
    LINK_PREFIX,
    SCOPES_OF,
    TOKEN_PREFIX,
    AccessToken,
    User,
    check_role,
    hashed,
    new_secret,
)
from downburst.foundation.errors import Refused
from downburst.foundation.moments import moment
from downburst.ledger import Transaction
from downburst.ledger.repositories.access import token_scopes
from downburst.ledger.repositories.audit import Changes
from downburst_api.http.pagination import Documented, Paged
from downburst_api.http.parameters import Asking, Hub, Number
from downburst_api.users.invitations import invited
from downburst_contract import access as shapes
from downburst_contract.base import members

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/users")
async def list_users(hub: Hub, page: Paged) -> list[shapes.User]:
    """Every user, by name."""
    return page.of(map(shapes.User.of, await hub.ledger.read(lambda tx: tx.access.users.all())), "user")


@router.post("/users", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_user(hub: Hub, wanted: shapes.UserNew) -> shapes.UserInvited:
    """Creates a user and an invitation to choose a password; its text is shown only here."""
    user = User(wanted.user, wanted.role, wanted.site)
    secret = new_secret(LINK_PREFIX)

    def add(tx: Transaction) -> shapes.UserInvited:
        kept = tx.access.users.add(user)
        return shapes.UserInvited.of(kept, **dict(invited(tx, kept, secret)))

    return await hub.ledger.write(add)


@router.get("/users/{user}")
async def show_user(hub: Hub, user: str) -> shapes.User:
    """One user."""
    return shapes.User.of(await hub.ledger.read(lambda tx: tx.access.users.one(user)))


@router.patch("/users/{user}", responses={403: {}})
async def change_user(hub: Hub, user: str, wanted: shapes.UserChange) -> shapes.User:
    """Changes a user's rights; a user who loses rights is signed out immediately."""
    given = wanted.model_dump(exclude_unset=True)
    kept = await hub.ledger.write(lambda tx: _changed(tx, tx.access.users.one(user), given))
    hub.gate.forget()
    return shapes.User.of(kept)


@router.delete("/users/{user}", status_code=204, responses={403: {}})
async def remove_user(hub: Hub, user: str) -> None:
    """Removes a user, who is signed out immediately."""
    await hub.ledger.write(lambda tx: tx.access.users.remove(user))
    hub.gate.forget()


@router.post("/users/{user}/invitations", status_code=201)
async def invite_again(hub: Hub, user: str) -> shapes.Invitation:
    """Creates another invitation, for a forgotten password; the old password is valid until a new one is chosen."""
    secret = new_secret(LINK_PREFIX)
    return await hub.ledger.write(lambda tx: invited(tx, tx.access.users.one(user), secret))


def _changed(tx: Transaction, user: User, given: dict[str, Any]) -> User:
    """A user with other rights; role and site of a provider's user follow from the groups at each sign-in."""
    if not user.is_local and given.keys() & {"role", "site"}:
        raise Refused(
            f"{user.name} has the role of a group at {user.issuer}; change the groups, or access.oidc.roles"
        )
    return tx.access.users.change(replace(user, **given))


@router.get("/access-tokens")
async def list_tokens(hub: Hub, page: Paged) -> list[shapes.AccessToken]:
    """Every access token, newest first; without their secrets."""
    tokens = await hub.ledger.read(lambda tx: tx.access.tokens.all())
    return page.of(map(shapes.AccessToken.of, tokens), "number", falling=True)


@router.post("/access-tokens", status_code=201)
async def add_token(hub: Hub, caller: Asking, wanted: shapes.AccessTokenNew) -> shapes.AccessTokenMade:
    """Creates an access token; its text is shown only here."""
    check_role(wanted.role, wanted.site)
    scopes = token_scopes(wanted.role, wanted.scopes or (), SCOPES_OF[wanted.role] & caller.scopes)
    secret, now = new_secret(TOKEN_PREFIX), hub.clock.now()
    token = AccessToken(
        number=0,
        name=wanted.name,
        sha256=hashed(secret),
        role=wanted.role,
        scopes=scopes,
        site=wanted.site,
        created_at=now,
        created_by=caller.name[:64],
        expires_at=now + timedelta(days=wanted.days),
    )

    def add(tx: Transaction) -> AccessToken:
        if wanted.site is not None:
            tx.sites.one(wanted.site)
        return tx.access.tokens.add(token)

    return shapes.AccessTokenMade.of(await hub.ledger.write(add), token=secret)


@router.delete("/access-tokens/{number}")
async def revoke_token(hub: Hub, number: Number) -> shapes.AccessToken:
    """Revokes an access token; it is invalid from this moment."""
    revoked = await hub.ledger.write(lambda tx: tx.access.tokens.revoke(number))
    hub.gate.forget()
    return shapes.AccessToken.of(revoked)


@router.get("/audit")
async def list_changes(  # noqa: PLR0913
    hub: Hub,
    page: Documented,
    *,
    who: Annotated[str | None, Query(max_length=80)] = None,
    kind: Annotated[str | None, Query(max_length=32, description="feed, site, subscription, pin ...")] = None,
    subject: Annotated[str | None, Query(max_length=300, description="Name of the changed object.")] = None,
    begin: Annotated[str | None, Query(alias="from", description="RFC 3339, or how long ago: 2h.")] = None,
    end: Annotated[str | None, Query(alias="to")] = None,
    cursor: Annotated[int | None, Query(ge=1, le=2**53, description="`next` of the previous page.")] = None,
    after: Annotated[int | None, Query(ge=1, le=2**53, deprecated=True, description="As above.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> shapes.ChangePage:
    """Changes, newest first, with their author and the former values."""
    now = hub.clock.now()
    wanted = Changes(
        who,
        kind,
        subject,
        begin=None if begin is None else moment(begin, now),
        end=None if end is None else moment(end, now),
    )
    found = await hub.ledger.read(lambda tx: tx.access.audit.page(wanted, before=cursor or after, limit=limit))
    items = [shapes.Change(**members(change)) for change in found]
    return shapes.ChangePage(items=items, next=page.lead_to(found[-1].number if len(found) == limit else None))
