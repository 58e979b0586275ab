"""Catch-up by group between the agent and its node, and in the state of the hub."""

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import pytest

from downburst.domain.backlog import FIRST_CATCH_UP, is_catch_up
from downburst.domain.plans import Transport
from downburst.foundation.bounds import OutOfBounds
from downburst.live.catch_ups import KEPT, CatchUps
from downburst.settings.multicast import CatchUpSettings, MulticastSettings
from downburst_scheduler.legs import group_address
from downburst_worker.messages.catch_up_lines import catch_up_changed, catch_up_line, transport_of
from factories import multicast

LINE: dict[str, Any] = {
    "event": "catch-up",
    "feed": "NGRID",
    "leg": FIRST_CATCH_UP + 2,
    "live_leg": 2,
    "state": "ended",
    "sites": ["isu.edu", "unl.edu"],
    "from": 3,
    "to": 9,
    "lacked_bytes": 80,
    "sent_bytes": 45,
    "saved_bytes": 35,
    "sentence": "2 sites caught up",
    "at_us": 1_767_225_600_000_000,
}


@pytest.mark.parametrize("network", [IPv4Network("239.77.0.0/24"), IPv6Network("ff15::/112")])
def test_a_stream_has_a_group_and_a_port_that_no_leg_has(network: IPv4Network | IPv6Network) -> None:
    settings = MulticastSettings(network=network, catch_up=CatchUpSettings(streams=2))
    legs = range(1, 100)
    found = [catch_up_line(multicast(leg), settings) for leg in legs]
    groups = {line["group"] for line in found if line}
    assert len(groups) == len(legs)
    assert groups.isdisjoint(group_address(leg, network) for leg in legs)
    assert all(line and line["port"] != settings.port_base + leg for leg, line in zip(legs, found, strict=True))
    first = found[0]
    assert first
    assert (first["leg"], first["least_bytes"], first["wait_ms"], first["streams"]) == (
        2**30 + 1,
        16_000_000,
        2_000,
        2,
    )


def test_there_is_no_stream_where_it_is_switched_off_or_has_no_place() -> None:
    leg, on = multicast(5, "unl.edu"), CatchUpSettings(streams=2)
    assert catch_up_line(leg, MulticastSettings(catch_up=on)) is not None
    assert catch_up_line(leg, MulticastSettings()) is None
    assert catch_up_line(leg, MulticastSettings(network=IPv4Network("239.77.0.1/32"), catch_up=on)) is None
    assert catch_up_line(replace(leg, relay="campus"), MulticastSettings(catch_up=on)) is None


def test_a_report_of_a_stream_is_read_and_nothing_impossible_is_believed() -> None:
    told = catch_up_changed(LINE)
    assert (told.state, told.sites, told.saved_bytes) == ("ended", ("isu.edu", "unl.edu"), 35)
    with pytest.raises(OutOfBounds):
        catch_up_changed(LINE | {"state": "paused"})
    with pytest.raises(OutOfBounds):
        catch_up_changed(LINE | {"saved_bytes": -1})


def test_a_stream_is_multicast_although_no_plan_has_it() -> None:
    assert is_catch_up(FIRST_CATCH_UP)
    assert not is_catch_up(2)
    assert transport_of(FIRST_CATCH_UP + 2, {}) is Transport.MULTICAST
    assert transport_of(2, {2: Transport.STATIC_CIRCUIT}) is Transport.STATIC_CIRCUIT
    assert transport_of(3, {}) is Transport.UNICAST


def test_the_end_of_a_stream_replaces_its_beginning_and_the_sums_stay() -> None:
    live, ended = CatchUps(), catch_up_changed(LINE)
    live.apply(replace(ended, state="began", saved_bytes=0))
    live.apply(ended)
    assert live.of_feed("NGRID") == (ended,)
    for _ in range(KEPT):
        live.apply(ended)
    assert len(live.of_feed("NGRID")) == KEPT
    live.forget("NGRID")
    assert live.of_feed("NGRID") == ()
    assert (live.streams["NGRID"], live.saved_bytes["NGRID"]) == (KEPT + 1, 35 * (KEPT + 1))
