"""Attempts to sign in at the provider: the secret in the browser's cookie that ties the answer to the question."""

import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Self

from downburst.domain.access import new_secret
from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. State, nonce and verifier follow from its secret, so the hub keeps nothing until it ends."""

    secret: str
    place: str
    """The place on the page to return to: the part of its address after `#`."""

    @classmethod
    def begun(cls, place: str) -> Self:
        """A new attempt; refuses a place that is no fragment of an address."""
        if _PLACE.fullmatch(place) is None:
            raise BadInput("`at` is no place on the page; give the part of its address after #")
        return cls(new_secret(PREFIX), place)

    @classmethod
    def of_cookie(cls, value: str | None) -> Self | None:
        """The attempt in a cookie; None if there is none that can be read."""
        found = _COOKIE.fullmatch(value or "")
        return None if found is None else cls(found["secret"], found["place"])

    @property
    def cookie(self) -> str:
        """The text for the browser to keep."""
        return f"{self.secret}/{self.place}"

    @property
    def state(self) -> str:
        """Ties the provider's answer to this browser."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Ties the ID token to this attempt."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Proves that the asker of the code exchanges it (RFC 7636)."""
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        """The form of the verifier that the provider sees first: its SHA-256."""
        return _base64(self.verifier.encode())

    def has_state(self, state: str) -> bool:
        """True if an answer belongs to this attempt."""
        return compare_digest(state.encode(), self.state.encode())

    def _derived(self, purpose: str) -> str:
        return _base64(f"{purpose} {self.secret}".encode())


def _base64(text: bytes) -> str:
    """The SHA-256 of a text in 43 characters: base64url without padding."""
    return urlsafe_b64encode(sha256(text).digest()).rstrip(b"=").decode()


PREFIX = "dbx_"
SECONDS = 600
"""Long enough for a second factor, or for a new password."""
# Fragments without the characters that cookies can't have (RFC 6265, 4.1.1).
_PLACE = re.compile(r"[A-Za-z0-9._~!$&'()*+:@%/?=-]{0,300}")
_COOKIE = re.compile(rf"(?P<secret>{PREFIX}[\w-]{{43}})/(?P<place>{_PLACE.pattern})", re.ASCII)
