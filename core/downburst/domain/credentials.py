"""Identities of receivers: credentials, which expire and are replaced, and the tokens that create them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Credential:
    """A receiver's secret, presented at each connection; the hub knows only its SHA-256.

    A receiver replaces it within its session: both are valid until it presents the new one.
    """

    sha256: str
    site: str
    created_at: datetime
    peer: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    replaces: str | None = None
    """SHA-256 of the credential that it replaces."""
    replaced_at: datetime | None = None
    """The time when its receiver first presented the replacement; it is invalid from then on."""
    asked_at: datetime | None = None
    """The time since which an early replacement is requested."""

    def usable_at(self, instant: datetime) -> bool:
        """Neither revoked nor replaced nor expired."""
        return self.is_kept and (self.expires_at is None or instant < self.expires_at)

    @property
    def is_kept(self) -> bool:
        """Neither revoked nor replaced."""
        return self.revoked_at is None and self.replaced_at is None

    @property
    def renews_at(self) -> datetime:
        """The time from which its receiver is asked for a replacement: a third is left. An endless one is due."""
        if self.asked_at is not None:
            return self.asked_at
        if self.expires_at is None:
            return self.created_at
        return self.expires_at - (self.expires_at - self.created_at) / 3


@dataclass(frozen=True, slots=True)
class EnrolmentToken:
    """A right to enrol one receiver, once; only the SHA-256 of its secret is kept."""

    secret_sha256: str
    site: str
    created_at: datetime
    expires_at: datetime
    credential_seconds: int | None = None
    """The lifetime of the resulting credential; None: a token of a release in which they did not expire."""
    used_at: datetime | None = None
    used_by: str | None = None
    used_peer: str | None = None
