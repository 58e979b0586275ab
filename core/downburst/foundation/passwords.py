"""Passwords: argon2id with the parameters of RFC 9106 for little memory, 64 MiB for some tens of milliseconds."""

from functools import lru_cache
from typing import TYPE_CHECKING

from downburst.foundation.errors import BadInput

if TYPE_CHECKING:
    from argon2 import PasswordHasher


def hash_password(password: str) -> str:
    """The hash to store for a password; refuses one that is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise BadInput(f"a password has {SHORTEST} to {LONGEST} characters; choose a longer one, such as four words")
    return _hasher().hash(password)


def is_password(password: str, kept: str | None) -> bool:
    """True if it is the hashed password; takes the same time for a user that does not exist."""
    from argon2.exceptions import VerifyMismatchError  # noqa: PLC0415

    try:
        matches = _hasher().verify(kept or _nobodys_hash(), password[: LONGEST + 1])
    except VerifyMismatchError:
        return False
    return matches and kept is not None


@lru_cache(maxsize=1)
def _hasher() -> "PasswordHasher":
    # Loaded with the first password: commands and hubs without passwords need not wait for it.
    from argon2 import PasswordHasher  # noqa: PLC0415

    return PasswordHasher()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    return _hasher().hash("no user has this password")


SHORTEST, LONGEST = 10, 1024
