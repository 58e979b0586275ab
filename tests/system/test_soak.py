"""An hour of grids to four sites that are stopped, killed and slow at times: running processes do not grow."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from kit.node import SiteNode
from kit.patience import wait_for
from kit.soak import MIB, Series, Watch
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system]
SITES = ["one", "two", "three", "four"]
RETENTION_BYTES = 100_000_000
SAMPLE_S = 1.0


class Grids(threading.Thread):
    """A play like NGRID's: some products in most seconds, and occasional bursts."""

    def __init__(self, hub: WholeHub, seed: int) -> None:
        super().__init__(daemon=True)
        self.hub, self.random = hub, random.Random(seed)
        self.over = threading.Event()
        self.count = 0

    def run(self) -> None:
        url, authorization = f"http://{self.hub.http}", self.hub.authorization
        with httpx.Client(base_url=url, timeout=60, headers=authorization) as client:
            while not self.over.wait(self.random.expovariate(2.0)):
                for _ in range(20 if self.random.random() < 0.1 else 3):
                    size = min(int(self.random.lognormvariate(10.5, 1.0)), 2_000_000)
                    answer = client.put(f"/v1/feeds/NGRID/products/{self.count}", content=os.urandom(size))
                    self.count += answer.status_code == 201


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[WholeHub]:
    whole = WholeHub(tmp_path / "hub", multicast_network="239.78.77.0/24").start()
    yield whole
    whole.stop()


@pytest.fixture
def sites(hub: WholeHub, tmp_path: Path) -> Iterator[dict[str, SiteNode]]:
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "class": "grid", "retention_bytes": RETENTION_BYTES})
    started = {}
    for name in SITES:
        limits = ["--retention-bytes", str(RETENTION_BYTES), "--no-files"]
        site = SiteNode(tmp_path / name, hub.sites, arguments=limits)
        hub.ask("POST", "/v1/sites", json={"site": name, "multicast_interface": "127.0.0.1"})
        hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": "NGRID"})
        site.directory.mkdir()
        site.token_file.write_text(hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        started[name] = site.start()
    wait_for("all sites", lambda: connected(hub) == len(SITES), 60)
    yield started
    for site in started.values():
        with suppress(ProcessLookupError):
            site.process.send_signal(signal.SIGCONT)
        site.stop()


@pytest.mark.long(30)
def test_half_a_minute_of_grids(hub: WholeHub, sites: dict[str, SiteNode]) -> None:
    soak(hub, sites, seconds=30)


@pytest.mark.nightly
def test_an_hour_of_grids(hub: WholeHub, sites: dict[str, SiteNode]) -> None:
    soak(hub, sites, seconds=float(os.environ.get("DOWNBURST_SOAK_SECONDS", "3600")))


def test_what_grows_is_found_and_what_swings_is_not() -> None:
    leak, swing = Series("leak", 8 * MIB), Series("swing", 8 * MIB)
    noise = random.Random(1)
    for second in range(120):
        leak.samples.append((second, 50 * MIB + second * MIB / 5 + noise.random() * MIB))
        swing.samples.append((second, 50 * MIB + noise.random() * 10 * MIB))
    assert "leak grew by" in str(leak.complaint())
    assert swing.complaint() is None


def soak(hub: WholeHub, sites: dict[str, SiteNode], *, seconds: float) -> None:
    grids, watch, chance = Grids(hub, seed=1), Watch(), random.Random(2)
    grids.start()
    began = time.monotonic()
    disturbed = began
    while (now := time.monotonic()) < began + seconds:
        watch.sample(now - began, pids(hub, sites))
        # Only one site is disturbed, so that the series of the others are long.
        if now > disturbed + max(seconds / 60, 5):
            disturb(sites["four"], chance)
            disturbed = now
        time.sleep(SAMPLE_S)
    grids.over.set()
    grids.join(timeout=60)
    assert grids.count > seconds, "the play was no play"
    wait_for("all sites to have everything", lambda: behind(hub) == 0, 120)
    for series in watch.series.values():
        if len(series.samples) > 20:
            print(f"{series.name}: {series.samples[-1][1]:.0f}, growth {series.growth():.0f}")
    assert not watch.complaints(), "\n".join(watch.complaints())


def disturb(site: SiteNode, chance: random.Random) -> None:
    """Stops the site for a while, or kills and restarts it."""
    if chance.random() < 0.5:
        site.process.send_signal(signal.SIGSTOP)
        time.sleep(chance.random() * 2)
        site.process.send_signal(signal.SIGCONT)
    else:
        site.kill()
        site.start()


def pids(hub: WholeHub, sites: dict[str, SiteNode]) -> dict[str, int]:
    found = {name: site.process.pid for name, site in sites.items()} | {"the api": hub.process.pid}
    for pid in hub.node_pids():
        found["the node"] = pid
    return found


def connected(hub: WholeHub) -> int:
    return sum(site["connected"] for site in hub.ask("GET", "/v1/overview")["sites"])


def behind(hub: WholeHub) -> int:
    """Products that any site should have and has not reported; a site that is away counts as well."""
    status = hub.ask("GET", "/v1/status")
    head = next(int(feed["head"]) for feed in status["feeds"] if feed["feed"] == "NGRID")
    shown = hub.ask("GET", "/v1/overview")["sites"]
    stands = [feed["settled_to"] for site in shown if site["connected"] for feed in site["feeds"]]
    return int(sum(head - at for at in stands) + len(SITES) - len(stands))
