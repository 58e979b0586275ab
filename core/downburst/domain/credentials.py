"""What receivers prove themselves with: credentials that end and are replaced, and the tokens that begin them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Credential:
    """What a receiver shows at each connection; only its SHA-256 is known to the hub.

    A receiver replaces it within its session: both are good until it shows the new one.
    """

    sha256: str
    site: str
    created_at: datetime
    peer: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    replaces: str | None = None
    """SHA-256 of the one that it takes the place of."""
    replaced_at: datetime | None = None
    """Since when its receiver shows the one that took its place; it counts for nothing from then on."""
    asked_at: datetime | None = None
    """Since when somebody wants it replaced before its time."""

    def usable_at(self, instant: datetime) -> bool:
        """Neither revoked nor replaced nor expired."""
        return self.is_kept and (self.expires_at is None or instant < self.expires_at)

    @property
    def is_kept(self) -> bool:
        """Neither revoked nor replaced."""
        return self.revoked_at is None and self.replaced_at is None

    @property
    def renews_at(self) -> datetime:
        """From when on its receiver is asked for another one: a third of its time is left. An endless one is due."""
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
    """How long the credential lasts that the token is traded for; None: a token of a release before they ended."""
    used_at: datetime | None = None
    used_by: str | None = None
    used_peer: str | None = None
