"""Relays as values: their addresses, the chains from sites to the hub, and circles."""

import random

import pytest

from downburst.domain.relays import Core, CoreCircuit, FanOut, Relay, SiteWay
from downburst.domain.relays.relay import (
    MOST_CHAINS,
    MOST_OF_CHAIN,
    MOST_SITES,
    chains_of,
    check_no_circle,
    check_relay_address,
)
from downburst.domain.relays.ways import by_name, via_of
from downburst.foundation.errors import BadInput


def relay(name: str, *sites: str, address: str | None = "relay:7379") -> Relay:
    fan_out = None if address else FanOut.GROUP
    return Relay(name, address, fan_out, sites)


@pytest.mark.parametrize("text", ["relay.campus.edu:7379", "192.0.2.1:1", "[2001:db8::1]:65535", "relay:80"])
def test_these_are_addresses(text: str) -> None:
    assert check_relay_address(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", ":7379", "relay", "relay:", "relay:0", "relay:65536", "relay:123456", "relay:x", "relay:-1"),
        *("2001:db8::1:7379", "[2001:db8::1]", "a b:1", "a:1,b:1", "-a:1", "a/b:1", "a:\u0661", "a:1\n", "[x]:1"),
        "x" * 300 + ":1",
    ],
)
def test_these_are_none(text: str) -> None:
    with pytest.raises(BadInput, match="is not the address of a relay; write HOST:PORT"):
        check_relay_address(text)


def test_more_sites_than_one_relay_has_are_refused() -> None:
    names = tuple(f"site-{number}" for number in range(MOST_SITES + 1))
    assert relay("campus", *names[:-1]).sites
    with pytest.raises(BadInput, match="has 5,001 sites, and the limit is 5,000; use several"):
        relay("campus", *names)


def test_a_relay_fans_out_its_feeds_and_only_if_it_fans_out() -> None:
    assert Relay("a", None, FanOut.GROUP, feeds=("*",)).may_carry("NGRID")
    assert not Relay("a", None, FanOut.GROUP, feeds=("WARN",)).may_carry("NGRID")
    assert not Relay("a", "a:1", feeds=("*",)).may_carry("NGRID")


def test_chains_lead_from_the_site_to_the_hub_by_relays_that_splice() -> None:
    relays = [relay("core", "campus"), relay("campus", "oslo"), relay("local", "oslo", address=None)]
    assert chains_of("oslo", relays) == (("campus",), ("campus", "core"))
    assert chains_of("campus", relays) == (("core",),)
    assert chains_of("bergen", relays) == ()


def test_chains_are_bounded_in_length_and_number() -> None:
    long = [relay(f"r{number}", f"r{number - 1}" if number else "oslo") for number in range(9)]
    assert [len(chain) for chain in chains_of("oslo", long)] == [1, 2, 3, 4]
    many = [relay(f"r{number}", "oslo", *(f"r{other}" for other in range(number))) for number in range(30)]
    found = chains_of("oslo", many)
    assert len(found) == MOST_CHAINS
    assert max(map(len, found)) <= MOST_OF_CHAIN


def test_a_circle_is_named_by_the_relays_on_it() -> None:
    others = [relay("core", "campus"), relay("edge", "core")]
    check_no_circle(relay("campus", "oslo"), others)
    with pytest.raises(BadInput, match="relay campus would be behind itself, by way of core, edge; leave out one"):
        check_no_circle(relay("campus", "edge"), others)


@pytest.mark.parametrize("seed", range(50))
def test_relays_that_were_accepted_never_make_a_circle(seed: int) -> None:
    draw = random.Random(seed)
    names = [f"r{number}" for number in range(6)]
    kept: dict[str, Relay] = {}
    for _ in range(30):
        name = draw.choice(names)
        wanted = relay(name, *draw.sample([other for other in names if other != name], 2))
        try:
            check_no_circle(wanted, kept.values())
        except BadInput:
            continue
        kept[name] = wanted
    for name in names:
        for chain in chains_of(name, kept.values()):
            assert name not in chain, f"seed {seed}"
            assert len(set(chain)) == len(chain), f"seed {seed}"


@pytest.mark.parametrize(
    ("inner", "first"), [("10.9.0.1", "campus:7379,10.9.0.1:7380"), ("fd00::1", "campus:7379,[fd00::1]:7380")]
)
def test_a_way_over_a_circuit_has_its_routed_chain_behind_it(inner: str, first: str) -> None:
    known = by_name([relay("campus", "oslo", address="campus:7379"), relay("depot", "campus", address="depot:7380")])
    way = SiteWay("oslo", ("campus", "depot"), "faster", over=CoreCircuit(7, "depot", inner))
    assert via_of(way, known) == [first, "campus:7379,depot:7380"]
    assert via_of(way, {"depot": known["depot"]}) == [], "a relay of it is gone"
    elsewhere = SiteWay("oslo", ("campus", "depot"), "faster", over=CoreCircuit(7, "gone", inner))
    assert via_of(elsewhere, known) == ["campus:7379,depot:7380"]


def test_the_cores_of_a_way_are_between_its_relays() -> None:
    assert SiteWay("oslo", ("a", "b", "c"), "").cores == (Core("a", "b"), Core("b", "c"))
    assert SiteWay("oslo", ("a",), "").cores == SiteWay("oslo", (), "").cores == ()


@pytest.mark.parametrize("address", ["", "10.9.0.1/30", "depot", "10.9.0.1:7379"])
def test_an_address_inside_a_circuit_is_that_of_a_host(address: str) -> None:
    with pytest.raises(BadInput, match="is not an address inside circuit 7"):
        CoreCircuit(7, "depot", address)
