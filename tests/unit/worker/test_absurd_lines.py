"""Lines of the node with one absurd value: only the entry with that value is ignored."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from downburst.domain.events import Event, LdmViolated, SiteViolated, TrafficSeen
from downburst.foundation.bounds import SetAside
from downburst.foundation.clock import FakeClock
from downburst_worker.messages import circuit_lines, lines
from downburst_worker.messages.lines import traffic_seen
from downburst_worker.messages.relay_lines import relay_seen
from downburst_worker.messages.silence_lines import feed_silent, feed_stirred
from downburst_worker.messages.tcp_lines import tcp_trial
from downburst_worker.violations import ViolationReports
from factories import SOME_TIME

ABSURD: tuple[Any, ...] = (
    *(2**63, 2**64 - 1, 10**400, -1, -(2**70), 1e300, float("nan"), float("inf")),
    *("", "\0", "x" * 100_000, "\ud800", None, True, [], {}, [[]], [None], {"a": 1}),
)


KNOBS = {
    "congestion": "bbr",
    "send_buffer_bytes": 8_388_608,
    "receive_buffer_bytes": 4_096,
    "pacing_bps": 8_000,
    "connections": 16,
}


def session(site: str) -> dict[str, Any]:
    feed = {
        "feed": "NGRID",
        "settled_to": 9,
        "pending": 1,
        "transport": "unicast",
        "leg": 1,
        "late": 2,
        "trouble": "full",
        "heartbeat_us": 5,
        "heartbeat_waits_us": 6,
        "heartbeat_waited_us": 7,
        "linked": {"bytes": 8, "free_bytes": 9},
        "reading": {
            "leg": 1,
            "dropped": 2,
            "asked_bytes": 3,
            "granted_bytes": 4,
            "needed_bytes": 5,
            "limit_bytes": 6,
            "priority": 7,
            "standing": "real-time",
            "demotions": 8,
            "line": {"arrived_bps": 4, "offered_bps": 5, "packets": 6, "lost": 7, "windows": 8},
        },
        "action_failed": {
            "rule": "r:1",
            "exit": -9,
            "last_error": "no",
            "product": "p",
            "sequence": 3,
            "epoch": "7",
            "count": 2,
            "others": [1, 2],
        },
    }
    path = {
        "least_round_trip_us": 5,
        "sent_segments": 6,
        "resent_segments": 1,
        "rate_bps": 9,
        "is_lower_bound": True,
        "congestion": "bbr",
        "path_mtu_bytes": 1500,
    }
    return {
        "site": site,
        "clock_offset_us": -5,
        "clock_bound_us": 6,
        "round_trip_us": 7,
        "site_clock": {"synchronised": True, "error_us": 8, "estimated_error_us": 1, "daemon": "ntpd"},
        "path": path,
        "data_connections": 1,
        "data_connections_planned": 2,
        "data_connections_reason": "so",
        "tcp_profile": {"name": "overseas", "state": "canary", "knobs": dict(KNOBS)},
        "feeds": [feed],
    }


def traffic() -> dict[str, Any]:
    """A line with two entries of each kind, as the node writes it."""
    feed: dict[str, Any] = {"feed": "NGRID", "products": 1, "bytes": 5, "head": 9, "epoch": "18446744073709551615"}
    leg = {
        "leg": 1,
        "feed": "NGRID",
        "egress_bytes": 1,
        "repair_bytes": 2,
        "products": 3,
        "product_bytes": 4,
        "sites": 5,
        "backlog_bytes": 6,
    }
    circuit = {"lease": 1, "site": None, "out_bytes": 5, "in_bytes": 6}
    return {
        "event": "traffic",
        "at_us": 9,
        "from_us": 1,
        "to_us": 2,
        "control_bytes": 3,
        "gone": ["a", "b"],
        "feeds": [{**feed, "sizes": [5]}, {**feed, "feed": "OTHER", "sizes": [6]}],
        "legs": [leg, {**leg, "leg": 2}],
        "sessions": [session("liar"), session("honest")],
        "circuits": [circuit, {**circuit, "lease": 2}],
    }


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a line, including values that hold others."""
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield from places(one, (*at, name))


def spoilt(line: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(line)
    inside: Any = changed
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    return changed


def relay() -> dict[str, Any]:
    """The report of a relay with two entries of each kind."""
    near = {"round_trip_us": 2_000, "loss_ppm": 1_000, "congestion": "cubic", "rate_bps": 9}
    tunnel = {
        "site": "oslo",
        "site_side": "192.0.2.9:1",
        "hub_side": "198.51.100.1:2",
        "target": "hub:7370",
        "seconds": 60,
        "bytes_from_hub": 1,
        "bytes_from_site": 2,
        "rate_from_hub_bps": 3,
        "near": near,
        "onward": {**near, "round_trip_us": None, "loss_ppm": None, "congestion": "bbr"},
        "ended": False,
    }
    leg = {"leg": 7, "datagrams": 1, "bytes": 2, "dropped": 3}
    return {
        "event": "relay",
        "relay": "campus",
        "refused": 1,
        "tunnels": [copy.deepcopy(tunnel), {**tunnel, "site": None}],
        "legs": [leg, {**leg, "leg": 8}],
    }


LISTED = [place for place in places(traffic()) if len(place) >= 2 and place[1] == 0]


@pytest.mark.parametrize("place", LISTED, ids=lambda place: ".".join(map(str, place)))
def test_one_absurd_value_of_an_entry_costs_no_other_entry(place: tuple[Any, ...]) -> None:
    sound = traffic_seen(traffic(), {}, [])
    name = place[0]
    for value in ABSURD:
        aside: list[SetAside] = []
        seen = traffic_seen(spoilt(traffic(), place, value), {}, aside)
        for other in ("feeds", "legs", "sessions", "circuits", "gone"):
            left, right = list(getattr(seen, other)), list(getattr(sound, other))
            if other == name:
                left, right = [one for one in left if one in right], [one for one in right if one in left]
                assert len(left) >= 1, f"{place} = {value!r:.50}"
            assert left == right
        assert len(aside) <= 1
        assert can_be_kept(seen), f"{place} = {value!r:.50}"


@pytest.mark.parametrize(
    "place",
    [place for place in places(relay()) if len(place) >= 2 and place[1] == 0],
    ids=lambda place: ".".join(map(str, place)),
)
def test_one_absurd_value_of_a_relay_s_entry_costs_no_other_entry(place: tuple[Any, ...]) -> None:
    sound = relay_seen(relay(), [], at=SOME_TIME).report
    for value in ABSURD:
        aside: list[SetAside] = []
        seen = relay_seen(spoilt(relay(), place, value), aside, at=SOME_TIME).report
        assert seen.tunnels[-1:] == sound.tunnels[-1:]
        assert seen.legs[-1:] == sound.legs[-1:]
        assert len(aside) <= 1
        assert can_be_kept(seen), f"{place} = {value!r:.50}"


@pytest.mark.parametrize("name", ["relay", "refused", "tunnels", "legs"])
def test_a_relay_s_report_whose_own_values_can_not_be_is_refused_whole(name: str) -> None:
    values: tuple[Any, ...] = (2**64, -1, {}, None, [None] * 5_000)
    for value in values:
        with pytest.raises((ValueError, TypeError)):
            relay_seen(relay() | {name: value}, [], at=SOME_TIME)


@pytest.mark.parametrize("name", ["from_us", "to_us", "control_bytes", "feeds", "sessions"])
def test_a_line_whose_own_values_can_not_be_is_refused_whole(name: str) -> None:
    for value in (2**64, -1, "x", None):
        with pytest.raises((ValueError, TypeError)):
            traffic_seen(traffic() | {name: value}, {}, [])


EVENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "session": (
        lines.session_changed,
        {"site": "a", "state": "connected", "at_us": 5, "peer": "p", "reason": "r", "software": "s", "renews": True},
    ),
    "upstream": (lines.upstream_changed, {"upstream": "u", "state": "closed", "at_us": 5, "hub": "h", "reason": "r"}),
    "ldm-source": (
        lines.ldm_source_changed,
        {"source": "s", "upstream": "u", "state": "closed", "at_us": 5, "mode": "primary", "reason": "r"},
    ),
    "ldm-peer": (
        lines.ldm_peer_changed,
        {"peer": "p", "state": "refused", "at_us": 5, "what": "feedme", "site": "a", "reason": "r"},
    ),
    "leg": (
        lines.leg_changed,
        {"feed": "NGRID", "leg": 1, "site": "a", "state": "joined", "at_us": 5, "after": 6, "reason": "r"},
    ),
    "resend": (lines.resend_ended, {"resend": 1, "products": 2, "bytes": 3, "expired": 4}),
    "fault": (lines.told_fault, {"sentence": "s", "feed": "NGRID", "site": "a"}),
    "tcp-trial": (
        partial(tcp_trial, at=SOME_TIME),
        {
            "name": "overseas",
            "step": "taken-back",
            "knobs": KNOBS,
            "before": {},
            "canaries": 1,
            "others": 3,
            "canary_bps": 7,
            "others_bps": 10,
            "windows": 2,
            "reason": "r",
        },
    ),
    "stirred": (feed_stirred, {"feed": "NGRID", "arrived_us": 5}),
    "silent": (feed_silent, {"feed": "NGRID", "since_us": 5, "until_us": 6}),
    "circuit": (
        circuit_lines.circuit_told,
        {
            "lease": 1,
            "site": "a",
            "state": "down",
            "at_us": 5,
            "sentence": "s",
            "step": "x",
            "hop": "h",
            "remedy": "r",
        },
    ),
}


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_with_an_absurd_value_is_refused_or_harmless(event: str) -> None:
    parse, sound = EVENTS[event]
    assert can_be_kept(parse(sound))
    for name in sound:
        for value in ABSURD:
            try:
                parsed = parse(sound | {name: value})
            except (ValueError, TypeError, AttributeError):
                continue
            assert can_be_kept(parsed), f"{name} = {value!r:.50}"


async def test_what_is_set_aside_is_laid_to_its_site_once_a_minute(clock: FakeClock) -> None:
    said: list[Event] = []
    written: list[tuple[str, str | None]] = []

    async def write_down(text: str, *, site: str | None = None, next_step: str = "") -> None:
        written.append((text, site))

    service = ViolationReports(clock, say=said.append, write_down=write_down)
    for _ in range(3):
        await service.set_aside([SetAside("liar", "first"), SetAside("liar", "second"), SetAside(None, "whose")])
    assert [event.sentence for event in said if isinstance(event, SiteViolated)] == ["first"] * 3
    assert written == [
        ("a report of the node was ignored: whose", None),
        ("a report of the node of site liar was ignored: first", "liar"),
    ]
    clock.advance(61)
    await service.hear({"event": "violation", "site": "liar", "sentence": "again"})
    assert written[-1] == ("site liar reports impossible values: again", "liar")


async def test_an_ldm_peer_s_violation_is_told_each_time_and_written_down_once_a_minute(clock: FakeClock) -> None:
    said: list[Event] = []
    written: list[tuple[str, str | None]] = []

    async def write_down(text: str, *, site: str | None = None, next_step: str = "") -> None:
        written.append((text, site))

    service = ViolationReports(clock, say=said.append, write_down=write_down)
    line = {"event": "ldm-violation", "peer": "192.0.2.9", "source": "idd", "site": None, "sentence": "no clock"}
    for _ in range(3):
        await service.hear(line)
    assert said == [LdmViolated("192.0.2.9", clock.now(), "no clock", source="idd")] * 3
    assert written == [("the LDM 192.0.2.9 reports impossible values: no clock", None)]
    for name in line.keys() - {"event"}:
        for value in ABSURD:
            with suppress(ValueError, TypeError):
                await service.hear(line | {name: value})
    assert all(can_be_kept(event) for event in said)


def can_be_kept(value: object) -> bool:
    """True if every number in it fits into a database, and every text into either kind of database."""
    if isinstance(value, TrafficSeen):
        json.dumps([value.from_us, value.to_us], allow_nan=False)
    text = repr(value)
    return "\\x00" not in text and "\\ud800" not in text and len(text) < 50_000 and _fits(value)


def _fits(value: Any) -> bool:
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, str | float):
        return True
    if isinstance(value, dict):
        return all(map(_fits, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(_fits, value))
    names = getattr(value, "__slots__", ())
    return all(_fits(getattr(value, name)) for name in names)
