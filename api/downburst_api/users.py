"""Routes of administrators: users, access tokens, and who changed what."""

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from downburst.access import (
    LINK_PREFIX,
    SCOPES_OF,
    TOKEN_PREFIX,
    AccessToken,
    Caller,
    LinkKind,
    Role,
    Scope,
    User,
    check_role,
    hashed,
    new_secret,
)
from downburst.ledger import Book
from downburst.ledger.access import token_scopes
from downburst.ledger.audit import Changes
from downburst.moments import moment
from downburst_api.guard import caller_of
from downburst_api.pages import Documented, Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import Shape

router = APIRouter(prefix="/v1", tags=["access"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
_Site = Annotated[str, Field(max_length=63)]


class UserChange(Shape):
    """Properties of a user; those left out stay."""

    role: Role | None = None
    site: _Site | None = None
    active: bool | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


class UserNew(Shape):
    """A user to invite."""

    user: Annotated[str, Field(max_length=64)]
    role: Role
    site: _Site | None = None

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


class TokenNew(Shape):
    """An access token to make."""

    name: Annotated[str, Field(min_length=1, max_length=60)]
    role: Role
    scopes: Annotated[list[Scope], Field(max_length=20)] | None = None
    """Fewer than the role has; all of the role's if left out."""
    site: _Site | None = None
    days: Annotated[float, Field(gt=0, le=3_660)] = 365

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"site"}


@router.get("/users")
async def list_users(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Every user, by name."""
    return page.of(map(_user_out, await hub.ledger.read(lambda book: book.users.all())), "user")


@router.post("/users", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_user(hub: Hub, wanted: UserNew) -> dict[str, Any]:
    """Creates a user and an invitation to choose a password; its text is shown only here."""
    user = User(wanted.user, wanted.role, wanted.site)
    secret = new_secret(LINK_PREFIX)

    def add(book: Book) -> dict[str, Any]:
        kept = book.users.add(user)
        return _user_out(kept) | _invited(book, kept, secret)

    return await hub.ledger.write(add)


@router.get("/users/{user}")
async def show_user(hub: Hub, user: str) -> dict[str, Any]:
    """One user."""
    return _user_out(await hub.ledger.read(lambda book: book.users.one(user)))


@router.patch("/users/{user}", responses={403: {}})
async def change_user(hub: Hub, user: str, wanted: UserChange) -> dict[str, Any]:
    """Changes a user's rights; a user who loses rights is signed out immediately."""
    given = wanted.model_dump(exclude_unset=True)
    kept = await hub.ledger.write(lambda book: book.users.change(replace(book.users.one(user), **given)))
    hub.gate.forget()
    return _user_out(kept)


@router.delete("/users/{user}", status_code=204, responses={403: {}})
async def remove_user(hub: Hub, user: str) -> None:
    """Removes a user, who is signed out immediately."""
    await hub.ledger.write(lambda book: book.users.remove(user))
    hub.gate.forget()


@router.post("/users/{user}/invitations", status_code=201)
async def invite_again(hub: Hub, user: str) -> dict[str, Any]:
    """Creates another invitation, for a forgotten password; the old password is valid until a new one is chosen."""
    secret = new_secret(LINK_PREFIX)
    return await hub.ledger.write(lambda book: _invited(book, book.users.one(user), secret))


@router.get("/access-tokens")
async def list_tokens(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Every access token, newest first; without their secrets."""
    tokens = await hub.ledger.read(lambda book: book.access_tokens.all())
    return page.of(map(_token_out, tokens), "number", falling=True)


@router.post("/access-tokens", status_code=201)
async def add_token(hub: Hub, caller: Asking, wanted: TokenNew) -> dict[str, Any]:
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

    def add(book: Book) -> AccessToken:
        if wanted.site is not None:
            book.sites.one(wanted.site)
        return book.access_tokens.add(token)

    return _token_out(await hub.ledger.write(add)) | {"token": secret}


@router.delete("/access-tokens/{number}")
async def revoke_token(hub: Hub, number: Annotated[int, Path(ge=1, le=2**53)]) -> dict[str, Any]:
    """Revokes an access token; it is invalid from this moment."""
    revoked = await hub.ledger.write(lambda book: book.access_tokens.revoke(number))
    hub.gate.forget()
    return _token_out(revoked)


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
) -> dict[str, Any]:
    """Changes, newest first, with their author and the former values."""
    now = hub.clock.now()
    wanted = Changes(
        who,
        kind,
        subject,
        begin=None if begin is None else moment(begin, now),
        end=None if end is None else moment(end, now),
    )
    found = await hub.ledger.read(lambda book: book.audit.page(wanted, before=cursor or after, limit=limit))
    items = [asdict(change) for change in found]
    return page.of(items, found[-1].number if len(found) == limit else None)


def _invited(book: Book, user: User, secret: str) -> dict[str, Any]:
    link = book.login_links.add(hashed(secret), LinkKind.INVITATION, lifetime=INVITATION, user=user.name)
    book.audit.record("invitation", user.name, "added", after={"expires_at": link.expires_at})
    return {"fragment": f"#invitation={secret}", "link_expires_at": link.expires_at}


def _user_out(user: User) -> dict[str, Any]:
    return {
        "user": user.name,
        "role": user.role,
        "site": user.site,
        "active": user.active,
        "has_password": user.password_hash is not None,
        "created_at": user.created_at,
    }


def _token_out(token: AccessToken) -> dict[str, Any]:
    values = asdict(token)
    del values["sha256"]
    return values


INVITATION = timedelta(days=7)
