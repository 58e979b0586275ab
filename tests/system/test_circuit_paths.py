"""Effects of a circuit on its traffic: beside greedy flows, and through a buffer that is too small."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.busy import needs_quiet_machine
from kit.capabilities import needs, skip
from kit.circuit_trials import (
    Crowded,
    feed_schedule,
    latency_beside,
    multicast_beside,
    small_buffer,
    unicast_beside,
)
from kit.wire import Lane

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

LINE_BPS, RATE_BPS = 50_000_000, 30_000_000


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    with ExitStack() as stack:
        yield stack


def test_a_protected_circuit_keeps_its_rate_beside_greedy_flows(stack: ExitStack, tmp_path: Path) -> None:
    crowded = Crowded(tmp_path, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
    found = unicast_beside(crowded, flows=8, rounds=3, size=6_000_000)
    print(found)
    assert found.protected_bps >= 0.75 * RATE_BPS
    assert found.exposed_bps < RATE_BPS / 4
    assert found.others_bps > (LINE_BPS - RATE_BPS) / 2


def test_a_multicast_leg_has_nearly_all_of_its_circuit(stack: ExitStack, tmp_path: Path) -> None:
    crowded = Crowded(tmp_path, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
    found = multicast_beside(crowded, flows=8, rounds=3, seconds=1)
    print(found)
    assert found.protected_bps >= 0.95 * RATE_BPS
    assert found.others_bps > (LINE_BPS - RATE_BPS) / 2


def test_a_feed_on_a_circuit_is_as_late_as_its_backlog_says(stack: ExitStack, tmp_path: Path) -> None:
    needs_quiet_machine(max_load_per_core=4, max_lag_ms=20)
    crowded = Crowded(tmp_path, stack, line_bps=LINE_BPS, rate_bps=RATE_BPS)
    schedule = feed_schedule(1, seconds=8, mean_bps=0.4 * RATE_BPS, mean_bytes=120_000)
    found = latency_beside(crowded, flows=8, schedule=schedule)
    print(len(schedule), found)
    assert found.measured_s <= 1.2 * found.predicted_s
    assert found.routed_s > 2 * found.measured_s, "the routed path was not congested, which proves nothing"


@pytest.mark.parametrize("control", ["cubic", "bbr"])
def test_a_shaped_circuit_spares_a_small_buffer(stack: ExitStack, tmp_path: Path, control: str) -> None:
    needs("tun")
    needs_control(control)
    # 2.8 per cent of the bytes in flight at this rate: the loss that made DYNES slow.
    line = Lane(rate_bps=50_000_000, delay_ms=36, buffer_bytes=12_600)
    found = small_buffer(tmp_path, stack, line=line, control=control, rounds=3, seconds=2)
    print(found)
    if control == "cubic":
        assert found.shaped_bps >= 1.5 * found.unshaped_bps
    else:
        assert found.unshaped_sent_again >= 5 * max(found.shaped_sent_again, 1)


def needs_control(name: str) -> None:
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if name not in known:
        skip(f"the kernel has no congestion control {name}, only {', '.join(known)}; modprobe tcp_{name}")
