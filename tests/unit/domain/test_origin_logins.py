"""Logins at servers of data: for one host each, whole, and shown nowhere."""

from dataclasses import replace
from typing import Any

import pytest

from downburst.domain.bridges import OriginLogin
from downburst.domain.bridges.origins import check_web_address, login_for
from downburst.foundation.errors import BadInput
from unit.domain.test_wis2_sources import SOURCE

LOGIN = OriginLogin("data.example", "me", "sesame")
OTHER = OriginLogin("data.example:8443", token="sesame")
LOGINS = LOGIN, OTHER, OriginLogin("[2001:db8::1]:81", "me", "sesame")


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://data.example/a", 0),
        ("http://DATA.example:80/a", 0),
        ("https://data.example:443/a?b", 0),
        ("https://data.example:8443/a", 1),
        ("https://[2001:db8::1]:81/", 2),
        ("https://data.example:80/a", None),
        ("https://data.example.evil/a", None),
        ("https://data.example@evil.example/a", None),
        ("https://evil.example/data.example", None),
        ("https://data.example:99999/", None),
        ("https://[/", None),
    ],
)
def test_a_login_is_for_its_host_and_port(url: str, found: int | None) -> None:
    assert login_for(url, LOGINS) is (None if found is None else LOGINS[found])


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"user": "me"},
        {"password": "sesame"},
        {"user": "me", "password": "sesame", "token": "sesame"},
        {"user": "a:b", "password": "sesame"},
        {"user": "me", "password": "sesame\r\nX: y"},
        {"token": "a sesame"},
        {"token": "sesäme"},
        {"token": "sesame" * 1_000},
        {"host": "https://data.example", "token": "sesame"},
        {"host": "Data.example", "token": "sesame"},
        {"host": "data.example:0", "token": "sesame"},
        {"host": "", "token": "sesame"},
    ],
)
def test_half_a_login_is_refused_without_its_secret(parts: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refused:
        OriginLogin(**{"host": "data.example"} | parts)
    assert "ses" not in refused.value.sentence


def test_secrets_are_shown_nowhere_and_hosts_have_one_login() -> None:
    assert "sesame" not in repr(replace(SOURCE, logins=LOGINS))
    for wrong in ({"logins": (LOGIN, LOGIN)}, {"logins": (LOGIN,) * 51}, {"replay_url": "mqtts://x"}):
        with pytest.raises(BadInput):
            replace(SOURCE, **wrong)


@pytest.mark.parametrize(
    "url", ["", "x.example", "ftp://x", "https://", "https://a b", "https://u:p@x", "https://x?y", "https://x:0"]
)
def test_other_addresses_of_services_are_refused(url: str) -> None:
    with pytest.raises(BadInput, match=r"write one such as https://service\.example"):
        check_web_address(url, "a replay service")
