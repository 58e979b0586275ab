"""Soaks: steady on a circuit, unsteady on the routed path beside greedy flows, and continued after a kill."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs, skip
from kit.patience import wait_for
from kit.probe_soaks import soaks_beside_flows
from kit.probed_hub import SITE, ProbedHub, probed_hub
from kit.wire import Lane

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

M = 1_000_000
MOST_SENT_VARIATION = 0.02
TRANSPORTS = {"tcp": 0.10, "udp": 0.04}
"""The least variation on the routed path. Datagrams lose the share by which flows of BBR overshoot: a sixth."""


@pytest.mark.nightly
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("seconds", [20, 600])
def test_a_soak_is_steady_on_a_circuit_and_not_beside_greedy_flows(
    tmp_path: Path, seconds: float, transport: str
) -> None:
    needs("root", "netns", "veth", "bridge", "htb", "vxlan")
    if "bbr" not in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split():
        skip("the kernel has no bbr; modprobe tcp_bbr")
    with ExitStack() as stack:
        found = soaks_beside_flows(tmp_path, stack, seconds=seconds, transport=transport)
    print(f"{seconds} s by {transport}: circuit {found.circuit}, routed {found.routed}")
    if found.circuit.sent_variation > MOST_SENT_VARIATION:
        skip(f"the sender's own rate varied by {found.circuit.sent_variation:.1%}: machine too busy to judge")
    assert found.circuit.variation < 0.03
    assert found.routed.variation > TRANSPORTS[transport]


@pytest.mark.nightly
def test_a_soak_of_a_day_continues_after_the_death_of_hub_and_site_and_says_so(tmp_path: Path) -> None:
    lane = Lane(rate_bps=40 * M, delay_ms=10, buffer_bytes=60_000)
    with probed_hub(tmp_path, lane) as scene:
        begun = scene.command("probe", "soak", SITE, "--rate", "1M", "--hours", "24")
        number = int(begun.stdout.split()[1])
        scene.wait_state(number, "running")
        wait_for("seconds", lambda: scene.seconds(number))
        scene.hub.kill_api()
        scene.hub.start()
        continued(scene, number, attempts=2)
        scene.site.kill()
        wait_for("the gap", lambda: len(scene.probe(number)["gaps"]) == 2, 60)
        scene.site.start()
        continued(scene, number, attempts=3)
        scene.command("probe", "stop", str(number))
        stopped = scene.wait_state(number, "stopped")
        shown = scene.command("probe", "show", str(number)).stdout
    print(shown)
    reasons = [gap["reason"] for gap in stopped["gaps"]]
    assert reasons[0] == "the hub restarted"
    assert "session with unl.edu ended" in reasons[1] or "no packet" in reasons[1]
    assert all(gap["since"] < gap["until"] for gap in stopped["gaps"])
    assert shown.count("interrupted from ") == 2
    assert stopped["result"]["steps"][0]["received"] > 0


def continued(scene: ProbedHub, number: int, *, attempts: int) -> None:
    """Waits until the soak runs again, and further seconds are stored."""
    before = len(scene.seconds(number))
    wait_for(f"attempt {attempts}", lambda: scene.probe(number)["attempts"] == attempts, 90)
    wait_for("more seconds", lambda: len(scene.seconds(number)) > before, 60)
