"""TCP profiles over the API: the node gets them, a refused one is not kept, the path tells its own."""

from typing import Any

import pytest

from downburst.domain.events import SessionTraffic, TcpProfilesChanged, TrafficSeen
from downburst.domain.tcp.path import TcpPath
from downburst.domain.tcp.profiles import AppliedProfile, ProfileState, TcpKnobs, TcpTrial, TrialStep
from downburst.foundation.clock import FakeClock, to_us
from unit.api.conftest import Asked

ROUTE = "/v1/tcp-profiles/overseas"
KNOBS = {"congestion": "bbr", "send_buffer_bytes": 8_388_608, "pacing_bps": 50_000_000, "connections": 4}
WANTED: dict[str, Any] = {"prefix": "192.0.2.0/24", "mode": "trial", "knobs": KNOBS}
BBR = TcpKnobs("bbr", 8_388_608, None, 50_000_000, 4)


async def test_a_profile_reaches_the_node_and_is_listed(hub: Asked) -> None:
    made = await hub.ask("PUT", ROUTE, json=WANTED)
    assert made["knobs"] == KNOBS | {"receive_buffer_bytes": None}
    assert (made["profile"], made["mode"], made["learnt"], made["trial"]) == ("overseas", "trial", None, None)
    assert isinstance(await hub.events.next(), TcpProfilesChanged)
    (told,) = hub.node.fake.tcp_profiles
    assert told == {
        "name": "overseas",
        "prefix": "192.0.2.0/24",
        "mode": "trial",
        "knobs": KNOBS | {"receive_buffer_bytes": None},
        "learnt": None,
    }
    assert await hub.ask("GET", "/v1/tcp-profiles") == [made]
    assert await hub.ask("GET", ROUTE) == made
    changed = await hub.ask("PUT", ROUTE, json={"prefix": "2001:DB8::/32", "mode": "learn"})
    assert (changed["prefix"], changed["mode"], changed["knobs"]["congestion"]) == ("2001:db8::/32", "learn", None)
    await hub.ask("DELETE", ROUTE, 204)
    assert hub.node.fake.tcp_profiles == []
    for method in ("GET", "DELETE"):
        await hub.problem(method, ROUTE, 404, "not-found")


async def test_a_profile_that_the_node_refuses_changes_nothing(hub: Asked) -> None:
    before = await hub.ask("PUT", ROUTE, json=WANTED)
    problem = await hub.problem("PUT", ROUTE, 400, "bad-request", json=WANTED | {"knobs": {"congestion": "vegas"}})
    assert "the kernel has no vegas" in problem["detail"]
    other = WANTED | {"prefix": "198.51.100.0/24", "knobs": {"congestion": "vegas"}}
    await hub.problem("PUT", "/v1/tcp-profiles/other", 400, "bad-request", json=other)
    assert await hub.ask("GET", "/v1/tcp-profiles") == [before]
    assert [one["knobs"]["congestion"] for one in hub.node.fake.tcp_profiles] == ["bbr"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"prefix": "192.0.2.9/24"}, "the prefix 192.0.2.9/24 has bits of a host; write 192.0.2.0/24"),
        ({"prefix": "here"}, "'here' is not a prefix of addresses"),
        ({"knobs": {}}, "profile overseas sets nothing"),
        ({"mode": "learn"}, "profile overseas learns its values, so it takes none"),
        ({"mode": "guess"}, "mode: "),
        ({"knobs": {"congestion": "BBR; rm"}}, "knobs.congestion: "),
        ({"knobs": {"send_buffer_bytes": 4_095}}, "knobs.send_buffer_bytes: "),
        ({"knobs": {"receive_buffer_bytes": 2**30 + 1}}, "knobs.receive_buffer_bytes: "),
        ({"knobs": {"pacing_bps": 10**400}}, "knobs.pacing_bps: "),
        ({"knobs": {"pacing_bps": 1e300}}, "knobs.pacing_bps: "),
        ({"knobs": {"connections": 17}}, "knobs.connections: "),
        ({"knobs": {"window": 5}}, "knobs.window: "),
        ({"knobs": None}, "knobs: "),
    ],
)
async def test_an_impossible_profile_is_one_sentence_and_changes_nothing(
    hub: Asked, given: dict[str, Any], said: str
) -> None:
    problem = await hub.problem("PUT", ROUTE, 400, "bad-request", json=WANTED | given)
    assert said in problem["detail"]
    assert await hub.ask("GET", "/v1/tcp-profiles") == []
    assert hub.node.fake.jobs == []


async def test_an_impossible_name_and_a_prefix_that_is_taken_are_refused(hub: Asked) -> None:
    await hub.problem("PUT", "/v1/tcp-profiles/Over%20seas", 400, "bad-id", json=WANTED)
    await hub.ask("PUT", ROUTE, json=WANTED)
    problem = await hub.problem("PUT", "/v1/tcp-profiles/other", 409, "already-there", json=WANTED)
    assert "'overseas' already has the prefix" in problem["detail"]


async def test_the_last_trial_is_shown_with_its_figures(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("PUT", ROUTE, json=WANTED)
    trial = TcpTrial(
        "overseas",
        TrialStep.TAKEN_BACK,
        BBR,
        TcpKnobs(),
        1,
        3,
        6_000_000,
        10_000_000,
        1,
        "slower",
        clock.now(),
        "east",
    )
    await hub.runtime.ledger.write(lambda tx: tx.fleet.tcp_profiles.tried(trial))
    shown = (await hub.ask("GET", ROUTE))["trial"]
    assert (shown["step"], shown["canary_bps"], shown["others_bps"]) == ("taken-back", 6_000_000, 10_000_000)
    assert shown["ratio"] == pytest.approx(0.6)
    assert (shown["windows"], shown["reason"], shown["sender"]) == (1, "slower", "east")
    assert (shown["at"], shown["before"]["congestion"]) == (clock.now().isoformat(), None)


async def test_the_path_tells_the_profile_and_the_connections_for_the_site_s_rate(
    hub: Asked, clock: FakeClock
) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu", "access_rate_bps": 5e7})
    applied = AppliedProfile("overseas", ProfileState.CANARY, TcpKnobs("reno"))
    path = TcpPath(70_000, 100_000, 100, 6_000_000, is_lower_bound=False, congestion="reno", path_mtu_bytes=1_500)
    session = SessionTraffic("a.edu", 5, 400, 90_000, (), path=path, tcp_profile=applied)
    at_us = to_us(clock.now())
    hub.runtime.live.apply(TrafficSeen(at_us - 1_000_000, at_us, (), (), (session,), 0))
    told = await hub.ask("GET", "/v1/sites/a.edu/path")
    assert (told["tcp_profile"]["profile"], told["tcp_profile"]["state"]) == ("overseas", "canary")
    assert told["tcp_profile"]["knobs"]["congestion"] == "reno"
    assert told["parallel"]["connections"] == 8
    assert told["parallel"]["one_bps"] == pytest.approx(6.409e6, rel=1e-3)
    assert told["parallel"]["sentence"] == (
        "8 connections equal 50 Mb/s: each reaches 6.41 Mb/s at 70 ms and 0.1 % loss"
    )
