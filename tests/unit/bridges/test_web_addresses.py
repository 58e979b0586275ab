"""Questions to services: public addresses alone, unless others are allowed."""

import pytest

from downburst_bridges.web import may_ask


@pytest.mark.parametrize("public", ["8.8.8.8", "2001:67c:2e8:22::c100:68b", "::ffff:8.8.8.8"])
def test_the_public_internet_may_be_asked(public: str) -> None:
    assert may_ask(public, allows_private=False)


@pytest.mark.parametrize(
    "private",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "240.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd12::1",
        "::ffff:10.0.0.1",
        "2002:a00:1::1",
        "2001:0:4136::1",
        "64:ff9b::a00:1",
    ],
)
def test_private_networks_need_to_be_allowed(private: str) -> None:
    assert not may_ask(private, allows_private=False)
    assert may_ask(private, allows_private=True)


@pytest.mark.parametrize("never", ["239.1.2.3", "255.255.255.255", "0.0.0.0", "::", "ff02::1"])
def test_groups_and_nowhere_are_never_asked(never: str) -> None:
    assert not may_ask(never, allows_private=True)
