"""The scheduler beside the hub, twice, over a real PostgreSQL and a real Kafka: killed, and the broker killed."""

import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from kit import running
from kit.kafka import Kafka, kafka
from kit.node import SiteNode
from kit.patience import wait_for
from kit.postgres import Postgres, postgres
from kit.whole_hub import DOWNBURST, WholeHub

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as started:
        yield started


class Scheduler:
    """`downburst scheduler` with the hub's settings."""

    def __init__(self, hub: WholeHub, name: str) -> None:
        self._log = hub.directory / f"{name}.log"
        with self._log.open("wb") as log:
            argv = [DOWNBURST, "scheduler", "--settings", str(hub.directory / "settings.toml")]
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        running.note(self.process)

    def says(self, words: str) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        return words in self._log.read_text()


def test_two_schedulers_beside_a_hub(tmp_path: Path, server: Postgres, broker: Kafka) -> None:
    more = f'[kafka]\nservers = "{broker.address}"\n[scheduler]\napart = true\n'
    hub = WholeHub(tmp_path / "hub", ledger_url=server.url(server.database()), more=more).start()
    first = Scheduler(hub, "first")
    wait_for("the first to schedule", lambda: first.says("INFO downburst.hub schedules"), 60)
    second = Scheduler(hub, "second")
    wait_for("the second to stand by", lambda: second.says("this one stands by"), 60)
    sites = _sites(hub, tmp_path)
    _arrives_by(hub, "unicast")

    first.process.kill()
    killed = time.monotonic()
    hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"})
    _arrives_by(hub, "multicast")
    print(f"the other scheduler's plan was carried out {time.monotonic() - killed:.1f} s after the first was killed")
    assert second.says("INFO downburst.hub schedules")

    broker.kill()
    hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "unicast"})
    _put(hub, 2)
    for site in sites:
        site.wait_received(2, 60)
    broker.start()
    up = time.monotonic()
    _arrives_by(hub, "unicast")
    print(f"what was pinned without a broker was carried out {time.monotonic() - up:.1f} s after its start")
    versions = [plan["version"] for plan in hub.ask("GET", "/v1/feeds/NGRID/plans")]
    assert sorted(versions, reverse=True) == versions
    assert len(set(versions)) == len(versions)
    second.process.terminate()
    assert second.process.wait(30) == 0
    for site in sites:
        site.stop()
    assert hub.stop() == 0


def _sites(hub: WholeHub, home: Path) -> list[SiteNode]:
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "class": "grid"})
    sites = [SiteNode(home / name, hub.sites) for name in ("a.edu", "b.edu")]
    for site in sites:
        name = site.directory.name
        hub.ask("POST", "/v1/sites", json={"site": name, "multicast_interface": "127.0.0.1"})
        hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": "NGRID", "pattern": ".*"})
        site.directory.mkdir()
        site.token_file.write_text(hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        site.start()
    for site in sites:
        wait_for("the site's first checkpoint", partial(_checkpoints, site), 60)
    _put(hub, 1)
    return sites


def _checkpoints(site: SiteNode) -> list[Path]:
    return list((site.directory / "state").rglob("*.cbor"))


def _put(hub: WholeHub, number: int) -> None:
    hub.ask("PUT", f"/v1/feeds/NGRID/products/p{number}", content=b"%d" % number)


def _arrives_by(hub: WholeHub, transport: str) -> None:
    """Waits until the sites get the feed that way: the plan went from scheduler to hub, node and sites."""

    def found() -> bool:
        sites = hub.ask("GET", "/v1/overview")["sites"]
        served = [feed["transport"] for site in sites for feed in site["feeds"] if feed["transport"]]
        return served == [transport] * 2

    wait_for(f"the sites to be served by {transport}", found, 60)
