"""One lossy site out of seven slows no other: the promise of VCMTP, in network namespaces."""

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.busy import needs_quiet_machine
from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

SITES = [f"site{number}" for number in range(7)]
LOSSY = SITES[3]
PRODUCTS = 24
PRODUCT_BYTES = 1_000_000
RATE_BPS = 80_000_000
RUNS, MOST_RUNS = 3, 9
GOAL = 0.95


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "nft-numgen")
    with Lab(["hub", *SITES]) as lab:
        yield lab


def test_one_lossy_site_slows_nobody(lab: Lab, tmp_path: Path) -> None:
    hub, sites = start(lab, tmp_path)
    durations_s: dict[bool, list[float]] = {False: [], True: []}
    try:
        # Other work on the machine disturbs single runs; medians over more of them settle a close result.
        for run in range(MOST_RUNS):
            for lossy in (False, True):
                needs_quiet_machine(max_load_per_core=4.0, max_lag_ms=50.0)
                lab.loss(LOSSY, 5.0 if lossy else 0.0)
                durations_s[lossy].append(play(hub, sites, f"{run}-{lossy}"))
            if run + 1 >= RUNS and goodput_ratio(durations_s) >= GOAL:
                break
        assert lab.lost_packets(LOSSY) > 50, "the loss was not real"
    finally:
        for site in sites.values():
            site.stop()
        hub.stop()
    ratio = goodput_ratio(durations_s)
    print(f"the other six, with loss at one against none: {ratio:.3f} of the goodput; durations {durations_s}")
    assert ratio >= GOAL


def goodput_ratio(durations_s: dict[bool, list[float]]) -> float:
    """Goodput of the loss-free sites with a lossy one beside them, over that without, from medians."""
    return statistics.median(durations_s[False]) / statistics.median(durations_s[True])


def start(lab: Lab, directory: Path) -> tuple[HubNode, dict[str, SiteNode]]:
    hub = HubNode(
        directory / "hub",
        listen=f"{lab.address('hub')}:7370",
        interface=lab.address("hub"),
        prefix=lab.command("hub", []),
    ).start()
    hub.feed("NGRID")
    sites = {}
    for name in SITES:
        site = SiteNode(directory / name, hub.address, prefix=lab.command(name, []))
        hub.site(name, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        sites[name] = site.start()
    hub.wait_connected(*SITES)
    hub.multicast("NGRID", 2, 70, rate_bps=RATE_BPS, sites=SITES)
    for name in SITES:
        hub.wait_event(event="leg", site=name, state="joined")
    return hub, sites


def play(hub: HubNode, sites: dict[str, SiteNode], run: str) -> float:
    """Plays a burst; returns the median time in seconds that the loss-free sites took. All seven must complete."""
    before = {name: len(site.received()) for name, site in sites.items()}
    began_s = time.time()
    for number in range(PRODUCTS):
        hub.put("NGRID", f"{run}-{number}", os.urandom(PRODUCT_BYTES))
    assert hub.drained(seconds=120)
    took_s = {}
    for name, site in sites.items():
        assert len(site.wait_received(before[name] + PRODUCTS)) == before[name] + PRODUCTS
        took_s[name] = last_file_s(site) - began_s
    return statistics.median(took for name, took in took_s.items() if name != LOSSY)


def last_file_s(site: SiteNode) -> float:
    return max(path.stat().st_mtime for path in (site.directory / "received").rglob("*") if path.is_file())
