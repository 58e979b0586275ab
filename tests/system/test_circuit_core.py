"""A circuit between two relays, ordered by the scheduler, carries the core of a site's way until it is killed."""

import time
from pathlib import Path

import pytest

from kit.core_circuit import CIRCUIT_BPS, core_scene
from kit.patience import wait_for
from kit.relayed_hub import Products

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone, pytest.mark.nightly]


def test_a_way_over_an_ordered_circuit_has_the_rate_of_its_slowest_segment_until_it_is_killed(tmp_path: Path) -> None:
    with core_scene(tmp_path) as scene:
        scene.fill(flows=2)
        scene.offer()
        # A little more than the circuit carries, so that products always wait. With much more, or for longer, the
        # planner would refuse circuits that fall behind.
        with Products(scene.world, product_bytes=330_000, every_s=0.08) as products:
            wait_for("an order that is up", lambda: scene.orders()[:1] and scene.orders()[0]["step"] == "up", 60)
            wait_for("a way over the circuit", lambda: scene.way()["circuit"] is not None, 10)
            wait_for("a session over it", scene.is_over_circuit, 30)
            wait_for("its full rate", lambda: scene.rate_bps(1) > 0.8 * CIRCUIT_BPS, 30)
            rate_bps = scene.rate_bps(5)
            killed_s = time.monotonic()
            scene.kill_circuit()
            wait_for("the routed way", lambda: scene.way()["circuit"] is None, 10)
            told_s = time.monotonic() - killed_s
            # Nothing more comes over the circuit.
            before = scene.received_bytes()
            wait_for("products over the routed core", lambda: scene.received_bytes() > before + TELLING_BYTES, 20)
            took_s = time.monotonic() - killed_s
            products.more(1)
        print(f"{rate_bps / 1e6:.1f} Mb/s over the circuit; the way back after {told_s:.2f} s, taken {took_s:.2f} s")
        scene.world.complete()
        failed = [one for one in scene.orders() if one["step"] == "failed"]
    assert rate_bps >= 0.85 * CIRCUIT_BPS
    assert told_s <= BACK_S
    assert took_s <= WITH_CALL_S
    assert "the circuit died" in failed[-1]["outcome"]


BACK_S = 2.0
"""A second of it is the silence by which the near end notices."""
WITH_CALL_S = 3.0
"""Measured: 2.1 to 2.2 s. The connection by two relays, TLS, the session and slow start are eight round trips of a
full core, of 60 to 120 ms each."""
TELLING_BYTES = 50_000
"""Far more than the handshakes of a session."""
