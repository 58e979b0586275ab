"""Probes of the path between a hub's node and a site, over a wire of known rate."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs, needs_punctual_sender
from kit.node import NodeError
from kit.probed_path import ProbedPath, probed_path
from kit.wire import Lane

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

WIRE_BPS = 40_000_000
LANE = Lane(rate_bps=WIRE_BPS, delay_ms=10, buffer_bytes=60_000)
SWEEP = [{"rate_bps": rate * 1_000_000, "duration_ms": 1_000} for rate in (5, 10, 20, 40, 80)]
STEADY = [{"rate_bps": 8_000_000, "duration_ms": 4_000}]
LONG = [{"rate_bps": 8_000_000, "duration_ms": 600_000}]
DIRECTIONS = ("out", "in")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[ProbedPath]:
    needs("root", "netns", "veth", "bridge", "tun")
    with ExitStack() as stack:
        yield probed_path(stack, tmp_path, to_site=LANE, to_hub=LANE)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_knee_of_a_wire_is_its_rate_and_below_it_nothing_is_lost(scene: ProbedPath, direction: str) -> None:
    scene.begin("sweep", kind="knee", direction=direction, steps=SWEEP)
    ended = scene.ended("sweep")
    steps = ended["steps"]
    for step in steps:
        print({name: step[name] for name in ("rate_bps", "sent_bps", "received_bps", "sent", "lost", "delay_us")})
    print(f"knee {ended['knee_bps']} b/s, {ended['knee_reason']}; the sender was {ended['sender_lag_us']} us late")
    scene.wire.stop().needs_small_lag()
    assert ended["outcome"] == "done"
    needs_punctual_sender(ended["knee_reason"])
    assert ended["knee_reason"] is None
    assert abs(ended["knee_bps"] - WIRE_BPS) <= 0.05 * WIRE_BPS
    below = [step for step in steps if step["rate_bps"] < 0.95 * WIRE_BPS]
    assert len(below) >= 3
    assert all(step["lost"] < 0.001 * step["sent"] for step in below)
    assert any(step["lost"] > 0.05 * step["sent"] for step in steps), "no step was above the wire's rate"


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_seconds_of_a_constant_rate_add_up_to_its_result(scene: ProbedPath, direction: str) -> None:
    scene.begin("steady", kind="cbr", direction=direction, steps=STEADY, seconds=True)
    with pytest.raises(NodeError, match="steady of far runs"):
        scene.begin("second", kind="cbr", direction=direction, steps=STEADY)
    ended = scene.ended("steady")
    seconds = [event for event in scene.hub.events_named("probe-second") if event["probe"] == "steady"]
    (step,) = ended["steps"]
    print({name: step[name] for name in ("sent", "received", "lost", "delay_us", "jitter_us")})
    assert ended["outcome"] == "done"
    assert [event["second"] for event in seconds] == list(range(len(seconds)))
    assert sum(event["received"] for event in seconds) == step["received"]
    assert step["sent"] == step["received"] + step["lost"]
    assert step["received"] > 0
    assert ended["knee_bps"] is None
    assert ended["knee_reason"] is None


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_probe_ends_within_a_second_of_its_stop(scene: ProbedPath, direction: str) -> None:
    scene.begin("long", kind="soak", direction=direction, steps=LONG, seconds=True)
    scene.hub.wait_event(event="probe-second", probe="long")
    began = time.monotonic()
    scene.hub.do("probe-stop", probe="long", reason="products are late")
    ended = scene.ended("long")
    took_s = time.monotonic() - began
    print(f"the probe ended {took_s:.2f} s after its stop")
    assert (ended["outcome"], ended["reason"]) == ("stopped", "products are late")
    scene.wire.stop().needs_small_lag()
    assert took_s < 1.0
    assert [step["received"] > 0 for step in ended["steps"]] == [True], "the figures so far are kept"
    scene.hub.do("probe-stop", probe="long", reason="it has ended already")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_death_of_a_site_fails_its_probe_with_the_reason(scene: ProbedPath, direction: str) -> None:
    scene.begin("cut-short", kind="soak", direction=direction, steps=LONG, seconds=True)
    scene.hub.wait_event(event="probe-second", probe="cut-short")
    scene.site.kill()
    ended = scene.ended("cut-short")
    assert ended["outcome"] == "failed"
    assert "session with far ended" in ended["reason"] or "no packet" in ended["reason"]
    with pytest.raises(NodeError, match="far is not connected"):
        scene.begin("again", kind="cbr", direction=direction, steps=STEADY)
