"""Users, access tokens, sessions and one-time links in the ledger."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Row, delete, func, insert, not_, or_, select, update

from downburst.domain.access import AccessToken, Link, LinkKind, Role, Scope, Session, User
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound, Refused
from downburst.foundation.names import is_user_name
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.access import access_tokens, login_links, login_sessions, users
from downburst.ledger.tables.sites import sites


class Users:
    """Users by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[User]:
        """Every user, by name."""
        query = select(users).order_by(users.c.name)
        return [_user(row) for row in self._connection.execute(query) if is_user_name(row.name)]

    def misnamed(self) -> list[str]:
        """Names that an earlier release accepted and this one does not: such users can't sign in until recreated."""
        return [name for name in self._connection.scalars(select(users.c.name)) if not is_user_name(name)]

    def find(self, name: str) -> User | None:
        """The user, if there is one."""
        row = self._connection.execute(select(users).where(users.c.name == name)).one_or_none()
        return None if row is None or not is_user_name(row.name) else _user(row)

    def of_identity(self, issuer: str, subject: str) -> User | None:
        """The user whom a provider identifies by this subject, if there is one."""
        query = select(users).where(users.c.issuer == issuer, users.c.subject == subject)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _user(row)

    def one(self, name: str) -> User:
        """The user; refuses an unknown name."""
        user = self.find(name)
        if user is None:
            raise NotFound(f"there is no user {name!r}; `downburst users list` shows all")
        return user

    def add(self, user: User) -> User:
        """Adds a user; refuses a name that is taken."""
        if self.find(user.name) is not None:
            raise AlreadyThere(f"user {user.name!r} already exists; choose another name, or change that one")
        self._check_site(user)
        limits.USERS.check(self._connection, users, holder="this hub")
        kept = replace(user, created_at=self._clock.now())
        self._connection.execute(insert(users).values(asdict(kept)))
        self._audit.record("user", user.name, "added", after=kept)
        return kept

    def change(self, user: User) -> User:
        """Updates a user; a user who lost the right to sign in, or has a changed role, is signed out."""
        before = self.one(user.name)
        self._check_site(user)
        kept = replace(user, created_at=before.created_at)
        self._keep_an_admin(before, kept)
        self._connection.execute(update(users).where(users.c.name == user.name).values(asdict(kept)))
        if (before.role, before.site, before.password_hash, True) != (
            kept.role,
            kept.site,
            kept.password_hash,
            kept.active,
        ):
            self._connection.execute(delete(login_sessions).where(login_sessions.c.user == user.name))
        self._audit.record("user", user.name, "changed", before=_shown(before), after=_shown(kept))
        if before.password_hash != kept.password_hash:
            self._audit.record("password", user.name, "changed")
        return kept

    def remove(self, name: str) -> None:
        """Removes a user with the sessions; the audit entries remain."""
        before = None if name in self.misnamed() else self.one(name)
        if before is not None:
            self._keep_an_admin(before, None)
        self._connection.execute(delete(users).where(users.c.name == name))
        self._audit.record("user", name, "removed", before=None if before is None else _shown(before))

    def has_admin(self) -> bool:
        """True if an administrator can sign in."""
        return self._admins() > 0

    def _admins(self) -> int:
        able = users.c.role == Role.ADMIN, users.c.active.is_(True), users.c.password_hash.is_not(None)
        return self._connection.scalar(select(func.count()).select_from(users).where(*able)) or 0

    def _keep_an_admin(self, before: User, after: User | None) -> None:
        stays = after is not None and after.role is Role.ADMIN and after.active
        is_one = before.role is Role.ADMIN and before.active and before.password_hash is not None
        if is_one and not stays and self._admins() == 1:
            raise Refused(f"{before.name} is the only administrator; create another one first")

    def _check_site(self, user: User) -> None:
        if user.site is None:
            return
        if self._connection.scalar(select(sites.c.name).where(sites.c.name == user.site)) is None:
            raise NotFound(f"there is no site {user.site!r}; `downburst sites list` shows all")


class AccessTokens:
    """Programs' tokens by number."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[AccessToken]:
        """Every token, newest first."""
        query = select(access_tokens).order_by(access_tokens.c.number.desc())
        return [_token(row) for row in self._connection.execute(query)]

    def by_secret(self, sha256: str) -> AccessToken | None:
        """The token whose secret has this hash."""
        row = self._connection.execute(select(access_tokens).where(access_tokens.c.sha256 == sha256)).one_or_none()
        return None if row is None else _token(row)

    def add(self, token: AccessToken) -> AccessToken:
        """Adds a token under a new number."""
        self._make_room(token)
        row = asdict(token) | {"scopes": [scope.value for scope in token.scopes]}
        del row["number"]
        key = self._connection.execute(insert(access_tokens).values(row)).inserted_primary_key
        kept = replace(token, number=0 if key is None else int(key[0]))
        self._audit.record("access token", kept.number, "added", after=kept)
        return kept

    def _make_room(self, token: AccessToken) -> None:
        good = access_tokens.c.revoked_at.is_(None) & (access_tokens.c.expires_at > self._clock.now())
        of_maker = access_tokens.c.created_by == token.created_by
        maker = f"{token.created_by!r}"
        limits.ACCESS_TOKENS_OF_MAKER.check(self._connection, access_tokens, of_maker, good, holder=maker)
        limits.ACCESS_TOKENS.check(self._connection, access_tokens, good, holder="this hub")
        limits.ENDED_ACCESS_TOKENS.trim(
            self._connection, access_tokens, not_(good), by=access_tokens.c.number, holder="this hub"
        )

    def revoke(self, number: int) -> AccessToken:
        """Revokes a token with immediate effect."""
        row = self._connection.execute(select(access_tokens).where(access_tokens.c.number == number)).one_or_none()
        if row is None:
            raise NotFound(f"there is no access token {number}; `downburst tokens list` shows all")
        before = _token(row)
        if before.revoked_at is not None:
            return before
        after = replace(before, revoked_at=self._clock.now())
        change = update(access_tokens).where(access_tokens.c.number == number)
        self._connection.execute(change.values(revoked_at=after.revoked_at))
        self._audit.record("access token", number, "revoked", before=before, after=after)
        return after


class Sessions:
    """Sessions of users who have signed in."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def add(self, sha256: str, user: str | None, *, lifetime: timedelta) -> Session:
        """Adds a session; removes expired ones, and the oldest of a user who has too many."""
        now = self._clock.now()
        self._connection.execute(delete(login_sessions).where(login_sessions.c.expires_at <= now))
        of_user = _of(login_sessions.c.user, user)
        limits.SESSIONS_OF_USER.make_room(
            self._connection, login_sessions, of_user, by=login_sessions.c.created_at, holder=f"{user}"
        )
        session = Session(sha256, user, now, now + lifetime)
        self._connection.execute(insert(login_sessions).values(asdict(session)))
        return session

    def find(self, sha256: str) -> tuple[Session, User | None] | None:
        """A session that has not expired, with its user in the current state."""
        row = self._connection.execute(select(login_sessions).where(login_sessions.c.sha256 == sha256)).one_or_none()
        if row is None or row.expires_at <= self._clock.now():
            return None
        session = Session(**row._mapping)
        return session, None if session.user is None else Users(self._connection, self._clock).find(session.user)

    def end(self, sha256: str) -> None:
        """Signs out."""
        self._connection.execute(delete(login_sessions).where(login_sessions.c.sha256 == sha256))


class Links:
    """One-time links."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    def add(self, sha256: str, kind: LinkKind, *, lifetime: timedelta, user: str | None = None) -> Link:
        """Adds a link. Expired ones go, and the user's earlier ones of its kind unless they are for signing in."""
        now = self._clock.now()
        stale = [login_links.c.expires_at <= now]
        same = (login_links.c.kind == kind) & _of(login_links.c.user, user)
        if kind is not LinkKind.SIGN_IN:
            stale.append(same)
        self._connection.execute(delete(login_links).where(or_(*stale)))
        limits.LINKS_OF_USER.make_room(
            self._connection, login_links, same, by=login_links.c.expires_at, holder=f"{user}"
        )
        link = Link(sha256, kind, user, now + lifetime)
        self._connection.execute(insert(login_links).values(asdict(link)))
        return link

    def find(self, sha256: str) -> Link:
        """A link that can still be used; the refusal names the reason."""
        row = self._connection.execute(select(login_links).where(login_links.c.sha256 == sha256)).one_or_none()
        if row is None:
            raise Refused("this link is unknown here; ask for another one: downburst login --link")
        link = Link(**dict(row._mapping) | {"kind": LinkKind(row.kind)})
        if link.used_at is not None:
            raise Refused("this link was used already; ask for another one: downburst login --link")
        if link.expires_at <= self._clock.now():
            raise Refused(f"this link ended at {link.expires_at:%Y-%m-%d %H:%M} UTC; ask for another one")
        return link

    def use(self, sha256: str) -> Link:
        """Uses a link up."""
        link = self.find(sha256)
        unused = update(login_links).where(login_links.c.sha256 == sha256, login_links.c.used_at.is_(None))
        if self._connection.execute(unused.values(used_at=self._clock.now())).rowcount != 1:
            raise Refused("this link was used a moment ago; ask for another one: downburst login --link")
        return link


def token_scopes(role: Role, wanted: Sequence[Scope], allowed: frozenset[Scope]) -> tuple[Scope, ...]:
    """The scopes of a token: the requested ones, or all of its role; never more than `allowed`."""
    too_much = [scope.value for scope in wanted if scope not in allowed]
    if too_much:
        raise BadInput(f"a token with the role {role.value} can't have {', '.join(too_much)}; leave that out")
    return tuple(sorted(wanted or allowed))


def _of(column: Column[Any], user: str | None) -> ColumnElement[bool]:
    """The rows of a user; None stands for any user of the hub's machine."""
    return column.is_(None) if user is None else column == user


def _shown(user: User) -> dict[str, Any]:
    shown = {"role": user.role.value, "site": user.site, "active": user.active}
    return shown if user.is_local else shown | {"issuer": user.issuer}


def _user(row: Row[Any]) -> User:
    return User(**dict(row._mapping) | {"role": Role(row.role)})


def _token(row: Row[Any]) -> AccessToken:
    scopes = tuple(Scope(scope) for scope in row.scopes)
    return AccessToken(**dict(row._mapping) | {"role": Role(row.role), "scopes": scopes})
