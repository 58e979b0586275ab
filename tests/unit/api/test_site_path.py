"""The API's report on the path to a site."""

from datetime import timedelta

import pytest

from downburst.domain.events import LegChanged, SessionTraffic, TrafficSeen
from downburst.domain.tcp.path import TcpPath
from downburst.foundation.clock import FakeClock, to_us
from unit.api.conftest import Asked


async def test_what_nobody_measured_is_null_and_never_a_guess(hub: Asked) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu", "access_rate_bps": 5e7})
    told = await hub.ask("GET", "/v1/sites/a.edu/path")
    assert told.pop("multicast") == {
        "state": "not-tried",
        "feed": None,
        "at": None,
        "again_at": None,
        "reason": "no feed of this site has used multicast yet",
    }
    assert (told.pop("site"), told.pop("access_rate_bps"), told.pop("circuits")) == ("a.edu", 5e7, [])
    assert set(told.values()) == {None}
    await hub.problem("GET", "/v1/sites/b.edu/path", 404, "not-found")


async def test_what_was_measured_and_tried_is_told_with_its_time(hub: Asked, clock: FakeClock) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu"})
    path = TcpPath(70_000, 10_000, 50, 24_000_000, is_lower_bound=True, congestion="cubic", path_mtu_bytes=1_400)
    session = SessionTraffic("a.edu", 5, 400, 90_000, (), path=path)
    at_us = to_us(clock.now())
    hub.runtime.live.apply(TrafficSeen(at_us - 1_000_000, at_us, (), (), (session,), 0))
    hub.runtime.live.apply(LegChanged("NGRID", 8, "a.edu", "never-heard", clock.now(), reason="no querier"))
    told = await hub.ask("GET", "/v1/sites/a.edu/path")
    assert (told["seen_at"], told["round_trip_ms"], told["clock_bound_ms"]) == (clock.now().isoformat(), 70.0, 0.4)
    assert (told["loss"], told["rate_bps"], told["rate_is_lower_bound"]) == (0.005, 24_000_000, True)
    assert (told["congestion_control"], told["path_mtu_bytes"]) == ("cubic", 1_400)
    tried = told["multicast"]
    assert (tried["state"], tried["feed"], tried["reason"]) == ("not-heard", "NGRID", "no querier")
    assert tried["at"] == clock.now().isoformat()
    assert tried["again_at"] == (clock.now() + timedelta(minutes=30)).isoformat()
    seen = next(one for one in (await hub.ask("GET", "/v1/overview"))["sites"] if one["site"] == "a.edu")
    tcp = ("loss", "rate_bps", "rate_is_lower_bound", "congestion_control", "path_mtu_bytes")
    shared = (*tcp, "multicast", "circuits", "tcp_profile")
    assert seen["path"] == {name: told[name] for name in shared}
    await hub.ask("DELETE", "/v1/sites/a.edu", 204)
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu", "multicast": False})
    told = await hub.ask("GET", "/v1/sites/a.edu/path")
    assert (told["rate_bps"], told["multicast"]["state"]) == (None, "not-allowed")


async def test_the_forecast_of_the_rate_is_told_with_its_error_once_there_are_enough_measurements(
    hub: Asked, clock: FakeClock
) -> None:
    await hub.ask("POST", "/v1/sites", 201, json={"site": "a.edu"})
    for step in range(14):
        path = TcpPath(70_000, 1_000 * step, 0, 24_000_000, is_lower_bound=False, congestion="cubic")
        session = SessionTraffic("a.edu", 5, 400, 90_000, (), path=path)
        clock.advance(5)
        at_us = to_us(clock.now())
        hub.runtime.live.apply(TrafficSeen(at_us - 1_000_000, at_us, (), (), (session,), 0))
        told = await hub.ask("GET", "/v1/sites/a.edu/path")
        assert (told["forecast"] is None) == (step < 12), "two reports more: the first, and the one that waits"
    assert told["forecast"]["rate_bps"] == pytest.approx(24e6)
    assert told["forecast"]["error_share"] == pytest.approx(0)
    assert (told["forecast"]["samples"], told["forecast"]["best"]) == (11, "mean")
    await hub.ask("PATCH", "/v1/sites/a.edu", json={"access_rate_bps": 25e6})
    assert (await hub.ask("GET", "/v1/sites/a.edu/path"))["forecast"] is None, "the hub paces the site to that"
