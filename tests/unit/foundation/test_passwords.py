"""Passwords are stored as argon2id with the parameters that the documentation names."""

import pytest

from downburst.foundation.errors import BadInput
from downburst.foundation.passwords import hash_password, is_password


def test_a_password_is_known_again_and_no_other() -> None:
    kept = hash_password("four words are long")
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert is_password("four words are long", kept)
    assert not is_password("four words are lonG", kept)
    assert not is_password("no user has this password", None)


@pytest.mark.parametrize("password", ["123456789", "x" * 1025])
def test_short_and_endless_passwords_are_refused(password: str) -> None:
    with pytest.raises(BadInput, match="10 to 1024 characters"):
        hash_password(password)
