"""Many sites at one hub: idle ones cost it next to nothing, live ones get every matching product once.

The sites are those of a swarm: real sessions over TLS, digests checked, receipts given, but no log of their own.
"""

import os
import time
from pathlib import Path

import pytest

from kit.node import HubNode, Play
from kit.patience import wait_for
from kit.swarm import Swarm, enrol

pytestmark = [pytest.mark.system, pytest.mark.alone]

IDLE = 200
IDLE_SECONDS = 5.0
IDLE_CORE = 0.25
"""Ten times what a debug build needs on a slow machine; a loop that never sleeps takes a whole core."""
IDLE_BYTES = 250_000
"""Three times what a site at rest needs; one that kept a buffer for its next product would show."""
LIVE = 60
PRODUCTS = 100


def test_idle_sites_cost_the_hub_next_to_nothing(node: HubNode, tmp_path: Path) -> None:
    node.feed("NGRID")
    before = resident_bytes(node)
    swarm = start(node, tmp_path, IDLE)
    try:
        wait_for_rest(node)
        began, used = time.monotonic(), cpu_seconds(node)
        # The cost over this time is measured: there is no event to wait for.
        time.sleep(IDLE_SECONDS)
        core = (cpu_seconds(node) - used) / (time.monotonic() - began)
        each = (resident_bytes(node) - before) / IDLE
        print(f"{IDLE} idle sites: {100 * core:.1f} % of a core, {each / 1000:.0f} kB each")
        assert core < IDLE_CORE
        assert each < IDLE_BYTES
        node.put("NGRID", "they are there", b"x")
        swarm.wait_products(IDLE)
    finally:
        swarm.stop()


def test_every_live_site_gets_everything_once(node: HubNode, tmp_path: Path) -> None:
    node.feed("NGRID")
    swarm = start(node, tmp_path, LIVE)
    try:
        play = Play(node, "NGRID", seed=61)
        for _ in range(PRODUCTS):
            play.put()
        swarm.wait_products(LIVE * PRODUCTS)
        assert node.drained()
    finally:
        summary = swarm.stop()
    assert (summary["connected"], summary["products"]) == (LIVE, LIVE * PRODUCTS)


def start(node: HubNode, directory: Path, sites: int) -> Swarm:
    names = [f"site-{number}" for number in range(sites)]
    tokens = directory / "tokens"
    enrol(node, names, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, file=tokens)
    swarm = Swarm(node.address, tokens, arguments=["--receive"]).start()
    swarm.wait_connected(sites)
    return swarm


def wait_for_rest(node: HubNode) -> None:
    """Waits until the comparison of clocks and other work after a connection is over."""
    last = cpu_seconds(node)

    def rests() -> bool:
        nonlocal last
        time.sleep(0.5)
        before, last = last, cpu_seconds(node)
        return last - before < 0.5 * IDLE_CORE

    wait_for("a hub at rest", rests)


def cpu_seconds(node: HubNode) -> float:
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(node: HubNode) -> int:
    return int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
