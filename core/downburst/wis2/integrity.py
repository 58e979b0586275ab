"""Digests as notifications state them: a method and a value in base64; some centres write hexadecimal digits."""

import base64
import binascii
import hashlib
from dataclasses import dataclass

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Integrity:
    """The digest of a product's bytes."""

    method: str
    """One of `METHODS`."""
    digest: bytes

    @property
    def base64(self) -> str:
        """The value as the schema wants it."""
        return base64.b64encode(self.digest).decode()

    def is_of(self, content: bytes) -> bool:
        """True if the bytes have this digest."""
        return hashlib.new(self.method.replace("-", "_"), content).digest() == self.digest


def read_integrity(method: object, value: object) -> Integrity:
    """The digest of a notification's `integrity`; the value is base64, or hexadecimal as some centres write it."""
    if not isinstance(method, str) or method not in METHODS:
        raise BadInput(f"integrity has the method {str(method)[:20]!r}; it is one of {', '.join(METHODS)}")
    if not isinstance(value, str) or len(value) > LONGEST_VALUE:
        raise BadInput("integrity has no value of at most 128 characters")
    length = METHODS[method]
    for decode in (_base64, bytes.fromhex):
        try:
            digest = decode(value)
        except ValueError:
            continue
        if len(digest) == length:
            return Integrity(method, digest)
    raise BadInput(f"integrity has a value that is no {method} digest of {length} bytes in base64")


def _base64(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


METHODS = {"sha256": 32, "sha384": 48, "sha512": 64, "sha3-256": 32, "sha3-384": 48, "sha3-512": 64}
"""The methods of wis2-notification-message's schema, with the bytes of their digests."""
LONGEST_VALUE = 128
"""A digest of 64 bytes in hexadecimal digits."""
