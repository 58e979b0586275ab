"""Access rights: roles, scopes, users, tokens, sessions and one-time links.

A scope is required by a route, a role is a set of scopes, and a token may have fewer than its role. No secret is
stored: passwords as argon2 hashes, everything else as the SHA-256 of a random text.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Self

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_site_name, check_user_name


class Role(StrEnum):
    """What a person or program is to the hub."""

    VIEWER = "viewer"
    """Reads everything but secrets and the audit."""
    SITE = "site"
    """The administrator of one receiving site: sees and changes that site alone."""
    OPERATOR = "operator"
    """Manages feeds, sites, circuits and alarms."""
    ADMIN = "admin"
    """Manages users and tokens as well, and reads the audit."""


class Scope(StrEnum):
    """What a route asks of its caller."""

    LATENCY = "latency"
    """Latency, volume, and the distribution tree: data that an operator may publish."""
    READ = "read"
    """Feeds, plans, states: the contents of the page."""
    DETAILS = "details"
    """Contacts and addresses; never without a login."""
    METRICS = "metrics"
    """Prometheus."""
    INGEST = "ingest"
    """Submitting products."""
    OWN = "own"
    """Everything of the caller's own site."""
    OPERATE = "operate"
    """Changing feeds, sites, subscriptions, circuits, alarms."""
    ADMIN = "admin"
    """Users, tokens, audit, overrides of circuits."""


class LinkKind(StrEnum):
    """The purpose of a one-time link."""

    FIRST = "first"
    """Makes the first administrator."""
    INVITATION = "invitation"
    """Lets a user choose a password."""
    SIGN_IN = "sign-in"
    """Signs in the browser of a user of the command line."""


@dataclass(frozen=True, slots=True)
class User:
    """A person who signs in with a password, or at a provider of OpenID Connect."""

    name: str
    role: Role
    site: str | None = None
    """The one site of a user with the role `site`."""
    password_hash: str | None = field(default=None, repr=False)
    """None until the invitation was accepted."""
    active: bool = True
    created_at: datetime | None = None
    issuer: str | None = None
    """The provider that identifies the user, and decides on role and site at each sign-in; None: a local user."""
    subject: str | None = None
    """The provider's own identifier of the user, which is never given to another person."""

    def __post_init__(self) -> None:
        check_user_name(self.name)
        check_role(self.role, self.site)

    @property
    def is_local(self) -> bool:
        """True if the user signs in with a password of this hub."""
        return self.issuer is None


class SeveralSites(BadInput):
    """Groups that make a person the administrator of more than one site."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The role that a group of an identity provider gives to its members; with the role `site`, the site."""

    role: Role
    site: str | None = None

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The grant written as `viewer`, `operator`, `admin` or `site:NAME`; raises `BadInput` for another text."""
        if text.startswith(_SITE):
            return cls(Role.SITE, check_site_name(text.removeprefix(_SITE)))
        if text not in _RANKS:
            raise BadInput(f"{text[:80]!r} is no role of a group; write viewer, operator, admin or site:NAME")
        return cls(Role(text))


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A program's right to use the api until it expires or is revoked."""

    number: int
    name: str
    """Its purpose, as described by its creator."""
    sha256: str = field(repr=False)
    role: Role
    scopes: tuple[Scope, ...]
    site: str | None
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None = None

    def usable_at(self, instant: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and instant < self.expires_at


@dataclass(frozen=True, slots=True)
class Session:
    """A user who has signed in; `user` is None for a login by a link of the hub's own machine."""

    sha256: str = field(repr=False)
    user: str | None
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Link:
    """A right to do one thing once."""

    sha256: str = field(repr=False)
    kind: LinkKind
    user: str | None
    expires_at: datetime
    used_at: datetime | None = None


class RequestState(StrEnum):
    """What became of a request for access."""

    WAITING = "waiting"
    APPROVED = "approved"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a request: its author, and the answer for the requester."""

    state: RequestState = RequestState.WAITING
    decided_at: datetime | None = None
    decided_by: str = ""
    answer: str = ""
    invites: str | None = None
    """The user created by the approval, until it is removed; a later user of the same name is a different one."""


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """A site's request for access, with the endpoint that it registers."""

    number: int
    secret_sha256: str = field(repr=False)
    """SHA-256 of the secret by which the requester queries the outcome."""
    site: str
    organisation: str
    contact: str
    place: str = ""
    multicast_interface: str = ""
    access_rate_bps: float | None = None
    feeds: tuple[str, ...] = ()
    note: str = ""
    peer: str = ""
    asked_at: datetime | None = None
    decision: Decision = Decision()

    def __post_init__(self) -> None:
        check_site_name(self.site)


@dataclass(frozen=True, slots=True)
class Caller:
    """The author of a request, as named in the audit, with its rights."""

    name: str
    role: Role | None
    scopes: frozenset[Scope]
    site: str | None = None
    by_cookie: bool = False
    """True if a browser sent the proof by itself, so that other pages could trigger it."""
    peer: str = ""

    @property
    def known(self) -> bool:
        """True if it has signed in."""
        return self.role is not None

    def may(self, scope: Scope) -> bool:
        """True if it has the scope."""
        return scope in self.scopes


def grant_of(groups: Iterable[str], grants: Mapping[str, Grant]) -> Grant | None:
    """The widest grant of a person's groups; None if no group has one. `grants`: by group.

    A role for the whole hub is wider than that of a site. Raises `SeveralSites` if two sites are left to choose from.
    """
    found = {grants[group] for group in groups if group in grants}
    whole = [one for one in found if one.role is not Role.SITE]
    if whole:
        return max(whole, key=lambda one: _RANKS.index(one.role))
    if len(found) > 1:
        raise SeveralSites("the groups belong to several sites; a user has one")
    return found.pop() if found else None


def check_role(role: Role, site: str | None) -> None:
    """Requires a site for the role of a site's user, and none for other roles."""
    if (role is Role.SITE) != (site is not None):
        raise BadInput("the role `site` needs the name of the site, and no other role has one; give both or neither")


def new_secret(prefix: str) -> str:
    """A random text of 256 bits; the prefix identifies its kind to readers and to scanners of published code."""
    return prefix + secrets.token_urlsafe(32)


def hashed(secret: str) -> str:
    """The stored form of a random secret; it needs no salt, because it can't be guessed."""
    return sha256(secret.encode()).hexdigest()


@contextmanager
def acting(caller: Caller) -> Iterator[None]:
    """Attributes all changes inside the block to this caller."""
    before = _ACTING.set(caller)
    try:
        yield
    finally:
        _ACTING.reset(before)


def who_acts() -> Caller:
    """The actor of the current changes; the hub itself if there is no caller."""
    return _ACTING.get()


SCOPES_OF: Mapping[Role, frozenset[Scope]] = {
    Role.VIEWER: frozenset({Scope.LATENCY, Scope.READ, Scope.DETAILS, Scope.METRICS}),
    Role.SITE: frozenset({Scope.OWN}),
    Role.OPERATOR: frozenset(
        {Scope.LATENCY, Scope.READ, Scope.DETAILS, Scope.METRICS, Scope.INGEST, Scope.OWN, Scope.OPERATE}
    ),
    Role.ADMIN: frozenset(Scope),
}
THE_HUB = Caller("hub", Role.ADMIN, frozenset(Scope))
"""The actor without a caller: schedulers, housekeeping, the command line beside a stopped hub."""
LOCAL = "local"
"""The name of any user who may read the hub's own token file."""
_ACTING: ContextVar[Caller] = ContextVar("downburst_acting", default=THE_HUB)

SESSION_PREFIX = "dbs_"
TOKEN_PREFIX = "dba_"  # noqa: S105 - a prefix
LOCAL_PREFIX = "dbo_"
REQUEST_PREFIX = "dbq_"
LINK_PREFIX = "dbl_"
_SITE = "site:"
_RANKS = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)
