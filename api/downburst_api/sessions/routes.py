"""Routes of the caller: signing in and out, one-time links, the own password."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from downburst.domain.access import (
    LINK_PREFIX,
    LOCAL,
    SESSION_PREFIX,
    Caller,
    LinkKind,
    Role,
    User,
    acting,
    hashed,
    new_secret,
)
from downburst.foundation.errors import BadInput, DownburstError, NotSignedIn, Refused
from downburst.foundation.passwords import hash_password, is_password
from downburst.ledger import Transaction
from downburst.network.addresses import network_of
from downburst_api.border.authorization import cookie_name, shown_by
from downburst_api.http.parameters import Asking, Hub
from downburst_api.oidc.routes import AnyProvider, base_url
from downburst_api.runtime import Runtime
from downburst_api.sessions.beginning import begin_session, keep_in_browser, rights
from downburst_contract.access import LinkUse, PasswordChange, SessionBegun, SignedOut, SignIn, SignInLink, Who

router = APIRouter(prefix="/v1/session", tags=["access"])


@router.get("")
async def who_am_i(hub: Hub, caller: Asking) -> Who:
    """The caller and its rights; without a login `user` is null."""
    return Who(**rights(caller), hub=hub.settings.name)


@router.post("", status_code=201, response_model=SessionBegun, responses={401: {}, 429: {}})
async def sign_in(hub: Hub, request: Request, wanted: SignIn) -> JSONResponse:
    """Signs a user in: a cookie for a browser, or a secret for a program that asks for it."""
    _check_not_foreign(request)
    user = await _judged(hub, shown_by(request.scope).peer, wanted.user, wanted.password)
    if user is None:
        raise NotSignedIn("name or password is wrong; an administrator can send you a link for another password")
    return await _begin(hub, request, user, bearer=wanted.bearer)


@router.delete("", response_model=SignedOut)
async def sign_out(hub: Hub, request: Request, provider: AnyProvider) -> JSONResponse:
    """Ends the session that the request shows, if there is one; a provider's user may sign out there as well."""
    shown, ended = shown_by(request.scope), []
    for secret in (shown.bearer, shown.cookie):
        if secret is not None and secret.startswith(SESSION_PREFIX):
            sha256 = hashed(secret)
            ended.append(await hub.ledger.write(lambda tx, sha256=sha256: _ended(tx, sha256)))  # type: ignore[misc]
    hub.gate.forget()
    is_of_provider = any(user is not None and not user.is_local for user in ended)
    there = await provider.sign_out_url(f"{base_url(request, provider)}/") if provider and is_of_provider else None
    answer = JSONResponse(SignedOut(continue_at=there).model_dump())
    answer.delete_cookie(cookie_name(request.scope))
    return answer


@router.post("/link", status_code=201, response_model=SessionBegun, responses={403: {}, 409: {}})
async def use_link(hub: Hub, request: Request, wanted: LinkUse) -> JSONResponse:
    """Uses a one-time link: the first administrator, an invitation with a password, or a sign-in from the shell."""
    _check_not_foreign(request)
    peer = shown_by(request.scope).peer
    sha256 = hashed(wanted.link)
    # Counted before the ledger is read: concurrent guesses count like successive ones.
    hub.gate.sign_ins_by_peer.take(network_of(peer))
    link = await hub.ledger.read(lambda tx: tx.access.links.find(sha256))
    hub.gate.sign_ins_by_peer.give_back(network_of(peer))
    password = None
    if link.kind is not LinkKind.SIGN_IN:
        chosen = _needed(wanted.password)
        password = await hub.gate.hashing.run(peer, link.user or "", hash_password, chosen)
    with acting(Caller(f"{link.kind.value} link", None, frozenset(), peer=peer)):
        user = await hub.ledger.write(lambda tx: _used(tx, sha256, wanted.user, password))
    hub.gate.forget()
    return await _begin(hub, request, user, bearer=False)


@router.post("/links", status_code=201, responses={401: {}, 403: {}})
async def make_link(hub: Hub, caller: Asking) -> SignInLink:
    """Creates a link that signs a browser in once, as the caller: a user, or an account of the hub's machine."""
    user = None if caller.name == LOCAL else caller.name
    secret = new_secret(LINK_PREFIX)

    def make(tx: Transaction) -> Any:
        if not caller.known or (user is not None and tx.access.users.find(user) is None):
            raise Refused("links are made for users and for commands on the hub's machine, not for tokens")
        return tx.access.links.add(hashed(secret), LinkKind.SIGN_IN, lifetime=SIGN_IN_LINK, user=user)

    link = await hub.ledger.write(make)
    return SignInLink(fragment=f"#sign-in={secret}", expires_at=link.expires_at)


@router.put("/password", status_code=204, responses={401: {}, 403: {}})
async def change_password(hub: Hub, caller: Asking, wanted: PasswordChange) -> None:
    """Changes the user's own password; every session of the user ends."""
    user = await hub.ledger.read(lambda tx: tx.access.users.find(caller.name))
    if not caller.known or user is None:
        raise Refused("only a signed-in user can change a password")
    if not user.is_local:
        raise Refused(f"{user.name} signs in at {user.issuer}; change the password there")
    if await _judged(hub, caller.peer, caller.name, wanted.old) is None:
        raise Refused("the old password is wrong")
    new = await hub.gate.hashing.run(caller.peer, caller.name, hash_password, wanted.new)
    await hub.ledger.write(lambda tx: tx.access.users.change(_with_password(tx.access.users.one(caller.name), new)))
    hub.gate.forget()


async def _judged(hub: Runtime, peer: str, name: str, password: str) -> User | None:
    """The user, if the password is right; counted before the check, and the count stays if it is wrong."""
    hub.gate.attempt(peer, name)
    try:
        user = await hub.ledger.read(lambda tx: tx.access.users.find(name))
        kept = user.password_hash if user is not None and user.active else None
        good = await hub.gate.hashing.run(peer, name, is_password, password, kept)
    except DownburstError:
        hub.gate.take_back(peer, name)
        raise
    if not good:
        return None
    hub.gate.succeed(peer, name)
    return user


def _ended(tx: Transaction, sha256: str) -> User | None:
    """Ends a session; its user."""
    found = tx.access.sessions.find(sha256)
    tx.access.sessions.end(sha256)
    return None if found is None else found[1]


def _used(tx: Transaction, sha256: str, name: str | None, password: str | None) -> User | None:
    link = tx.access.links.use(sha256)
    if link.kind is LinkKind.FIRST:
        if tx.access.users.has_admin():
            raise Refused("an administrator already exists; ask for an invitation")
        if name is None:
            raise BadInput("the first administrator needs a name; give `user`")
        return tx.access.users.add(User(name, Role.ADMIN, password_hash=password))
    if link.user is None:
        return None
    user = tx.access.users.one(link.user)
    if not user.active:
        raise Refused(f"{user.name} can no longer sign in; ask an administrator")
    return user if password is None else tx.access.users.change(_with_password(user, password))


async def _begin(hub: Runtime, request: Request, user: User | None, *, bearer: bool) -> JSONResponse:
    """Begins a session, and makes the answer with its secret."""
    begun = await begin_session(hub, request, user, hours=hub.settings.access.session_hours)
    shown: dict[str, Any] = {"session": begun.secret} if bearer else {}
    body = SessionBegun(**rights(begun.caller), expires_at=begun.expires_at, **shown)
    answer = JSONResponse(body.model_dump(mode="json", exclude_unset=True), status_code=201)
    if not bearer:
        keep_in_browser(answer, request, begun)
    return answer


def _check_not_foreign(request: Request) -> None:
    """Refuses a foreign page's attempt to sign a browser in as another user."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Refused("this request comes from a page other than the hub's own; repeat it on the hub's page")


def _needed(password: str | None) -> str:
    if password is None:
        raise BadInput("this link needs a password; give `password`")
    return password


def _with_password(user: User, password_hash: str) -> User:
    return replace(user, password_hash=password_hash)


SIGN_IN_LINK = timedelta(minutes=10)
