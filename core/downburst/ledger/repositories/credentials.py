"""Credentials of receivers, and the enrolment tokens that create them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, insert, not_, or_, select, update

from downburst.domain.credentials import Credential, EnrolmentToken
from downburst.domain.sites import Site
from downburst.foundation.clock import Clock
from downburst.foundation.errors import Refused
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.sites import Sites
from downburst.ledger.storage import limits
from downburst.ledger.tables.sites import credentials, tokens


class Credentials:
    """Credentials that receivers present at each connection, by SHA-256."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def of(self, site: str) -> list[Credential]:
        """Every credential of a site, revoked and expired ones too, oldest first."""
        query = select(credentials).where(credentials.c.site == site).order_by(credentials.c.created_at)
        return [_credential(row) for row in self._connection.execute(query)]

    def usable(self) -> list[Credential]:
        """Every credential that was neither revoked nor replaced; the node itself checks the expiry."""
        kept = credentials.c.revoked_at.is_(None), credentials.c.replaced_at.is_(None)
        query = select(credentials).where(*kept).order_by(credentials.c.sha256)
        return [_credential(row) for row in self._connection.execute(query)]

    def enrolled(self) -> set[str]:
        """The sites with a receiver that ever had a credential, in any state."""
        return set(self._connection.scalars(select(credentials.c.site).distinct()))

    def revoke(self, site: str, sha256: str | None = None) -> int:
        """Revokes all credentials of a site, or those of the receiver that had this one; returns their number."""
        own = self.of(site)
        chosen = own if sha256 is None else _of_one_receiver(own, sha256)
        hashes = [one.sha256 for one in chosen if one.is_kept]
        self._change(hashes, revoked_at=self._clock.now())
        if hashes:
            what = {"credentials": len(hashes)} if sha256 is None else {"sha256": hashes}
            self._audit.record("credential", site, "revoked", after=what)
        return len(hashes)

    def ask(self, site: str) -> list[Credential]:
        """Makes the receivers of a site replace their credentials once connected; returns those to be replaced."""
        own, now = self.of(site), self._clock.now()
        followed = {one.replaces for one in own if one.is_kept}
        due = [one for one in own if one.usable_at(now) and one.sha256 not in followed]
        self._change([one.sha256 for one in due], asked_at=now)
        if due:
            self._audit.record("credential", site, "to be replaced", after={"sha256": [one.sha256 for one in due]})
        return due

    def replace(self, site: str, sha256: str, offered: str, *, peer: str, lifetime: timedelta) -> Credential:
        """Stores the replacement that a receiver offers for its credential, beside it; idempotent for the same offer.

        The new one has the lifetime of the former one, or `lifetime` if that had no end.
        """
        self.taken(site, sha256)
        now, current = self._clock.now(), self._one(sha256)
        if current is None or current.site != site or not current.usable_at(now):
            raise Refused(f"the credential that a receiver of {site} uses is no longer valid, and is not replaced")
        known = self._one(offered)
        if known is not None:
            if known.replaces != sha256 or not known.usable_at(now):
                raise Refused(
                    f"a receiver of {site} offered a credential that is already known; it has to create another"
                )
            return known
        self._make_room(site, now)
        self._forget_offers(sha256)
        if current.expires_at is not None:
            lifetime = current.expires_at - current.created_at
        made = Credential(offered, site, created_at=now, peer=peer, expires_at=now + lifetime, replaces=sha256)
        self._connection.execute(insert(credentials).values(asdict(made)))
        self._audit.record("credential", site, "replacement kept", after=made)
        return made

    def taken(self, site: str, sha256: str) -> bool:
        """Invalidates the predecessor of a credential that a receiver presented. True if it was valid until now."""
        own = {one.sha256: one for one in self.of(site)}
        shown = own.get(sha256)
        former = None if shown is None or not shown.is_kept else own.get(shown.replaces or "")
        if shown is None or former is None or not former.is_kept:
            return False
        self._change([former.sha256], replaced_at=self._clock.now())
        after = {"sha256": shown.sha256, "expires_at": shown.expires_at}
        before = {"sha256": former.sha256, "expires_at": former.expires_at}
        self._audit.record("credential", site, "replaced", before=before, after=after)
        return True

    def _make_room(self, site: str, now: datetime) -> None:
        """Limits repeated offers of a receiver, and removes the oldest invalid credentials."""
        today = credentials.c.replaces.is_not(None), credentials.c.created_at > now - DAY
        of_site = credentials.c.site == site
        limits.REPLACEMENTS_OF_SITE.check(self._connection, credentials, of_site, *today, holder=f"site {site!r}")
        _forget_ended(self._connection, site, now)

    def _one(self, sha256: str) -> Credential | None:
        row = self._connection.execute(select(credentials).where(credentials.c.sha256 == sha256)).one_or_none()
        return None if row is None else _credential(row)

    def _forget_offers(self, sha256: str) -> None:
        """Revokes replacements of a credential that were never presented: its receiver has lost them."""
        offers = update(credentials).where(credentials.c.replaces == sha256, credentials.c.revoked_at.is_(None))
        self._connection.execute(offers.values(revoked_at=self._clock.now()))

    def _change(self, hashes: list[str], **values: datetime) -> None:
        self._connection.execute(update(credentials).where(credentials.c.sha256.in_(hashes)).values(values))


class Tokens:
    """Enrolment tokens, by the SHA-256 of their secret."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def add(
        self, site: str, secret_sha256: str, *, lifetime: timedelta, credential_lifetime: timedelta | None = None
    ) -> EnrolmentToken:
        """Adds a token that enrols one receiver of a site, with the lifetime of its credentials."""
        Sites(self._connection, self._clock).one(site)
        begin = self._clock.now()
        self._make_room(site, begin)
        seconds = None if credential_lifetime is None else round(credential_lifetime.total_seconds())
        token = EnrolmentToken(
            secret_sha256, site, created_at=begin, expires_at=begin + lifetime, credential_seconds=seconds
        )
        self._connection.execute(insert(tokens).values(asdict(token)))
        self._audit.record("enrolment token", site, "added", after={"expires_at": token.expires_at})
        return token

    def of(self, site: str) -> list[EnrolmentToken]:
        """Every token of a site, newest first."""
        query = select(tokens).where(tokens.c.site == site).order_by(tokens.c.created_at.desc())
        return [_token(row) for row in self._connection.execute(query)]

    def end_pending(self, site: str) -> int:
        """Ends the unused tokens of a site; returns their number."""
        Sites(self._connection, self._clock).one(site)
        now = self._clock.now()
        pending = update(tokens).where(tokens.c.site == site, _pending_at(now))
        ended = self._connection.execute(pending.values(expires_at=now)).rowcount
        if ended:
            self._audit.record("enrolment token", site, "ended", after={"tokens": ended})
        return ended

    def _make_room(self, site: str, now: datetime) -> None:
        of_site, pending, holder = tokens.c.site == site, _pending_at(now), f"site {site!r}"
        limits.PENDING_TOKENS_OF_SITE.check(self._connection, tokens, of_site, pending, holder=holder)
        limits.PENDING_TOKENS.check(self._connection, tokens, pending, holder="this hub")
        limits.ENDED_TOKENS_OF_SITE.trim(
            self._connection, tokens, of_site, not_(pending), by=tokens.c.created_at, holder=holder
        )

    def consume(self, secret_sha256: str, credential_sha256: str, *, peer: str) -> Site:
        """Exchanges the token for a credential, once; a repeated request of the same receiver gets the same site."""
        row = self._connection.execute(select(tokens).where(tokens.c.secret_sha256 == secret_sha256)).one_or_none()
        if row is None:
            raise Refused("this token is unknown to the hub; ask the operator for a new one", code="token")
        token = _token(row)
        if token.used_by is None:
            self._use(token, credential_sha256, peer=peer)
        elif token.used_by != credential_sha256:
            raise Refused(
                f"this token was used by another receiver at {token.used_peer}; ask the operator for a new one"
            )
        return Sites(self._connection, self._clock).one(token.site)

    def _use(self, token: EnrolmentToken, credential_sha256: str, *, peer: str) -> None:
        at = self._clock.now()
        if at >= token.expires_at:
            raise Refused(
                f"this token expired at {token.expires_at:%Y-%m-%d %H:%M} UTC; ask the operator for a new one"
            )
        known = select(credentials.c.sha256).where(credentials.c.sha256 == credential_sha256)
        if self._connection.scalar(known) is not None:
            raise Refused("this receiver is enrolled already; remove its state directory to enrol it again")
        limits.CREDENTIALS_OF_SITE.check(
            self._connection,
            credentials,
            credentials.c.site == token.site,
            _usable_at(at),
            holder=f"site {token.site!r}",
        )
        _forget_ended(self._connection, token.site, at)
        unused = update(tokens).where(tokens.c.secret_sha256 == token.secret_sha256, tokens.c.used_by.is_(None))
        taken = self._connection.execute(unused.values(used_at=at, used_by=credential_sha256, used_peer=peer))
        if taken.rowcount != 1:
            raise Refused("this token was used by another receiver a moment ago; ask the operator for a new one")
        ends = None if token.credential_seconds is None else at + timedelta(seconds=token.credential_seconds)
        credential = Credential(credential_sha256, token.site, created_at=at, peer=peer, expires_at=ends)
        self._connection.execute(insert(credentials).values(asdict(credential)))
        self._audit.record("credential", token.site, "enrolled", after=credential)


def _forget_ended(connection: Connection, site: str, now: datetime) -> None:
    """Removes the oldest invalid credentials of a site beyond the limit."""
    ended = credentials.c.site == site, not_(_usable_at(now))
    limits.ENDED_CREDENTIALS_OF_SITE.trim(
        connection, credentials, *ended, by=credentials.c.created_at, holder=f"site {site!r}"
    )


def _usable_at(instant: datetime) -> ColumnElement[bool]:
    lasts = or_(credentials.c.expires_at.is_(None), credentials.c.expires_at > instant)
    return and_(credentials.c.revoked_at.is_(None), credentials.c.replaced_at.is_(None), lasts)


def _pending_at(instant: datetime) -> ColumnElement[bool]:
    return and_(tokens.c.used_by.is_(None), tokens.c.expires_at > instant)


def _of_one_receiver(own: Sequence[Credential], sha256: str) -> list[Credential]:
    """The credentials that replaced each other: they belong to the same receiver."""
    former = {one.sha256: one.replaces for one in own}

    def first(one: str) -> str:
        while (before := former.get(one)) is not None and before in former:
            one = before
        return one

    return [one for one in own if sha256 in former and first(one.sha256) == first(sha256)]


def _credential(row: Row[Any]) -> Credential:
    return Credential(**row._mapping)


def _token(row: Row[Any]) -> EnrolmentToken:
    return EnrolmentToken(**row._mapping)


DAY = timedelta(days=1)
