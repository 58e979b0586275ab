"""Parts beside the hub, two of each, over a real PostgreSQL and a real Kafka: killed, as are the servers."""

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
from kit.steady_source import Source, counted_once, enrolled
from kit.whole_hub import DOWNBURST, WholeHub

pytestmark = [pytest.mark.system]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server for these tests alone, which kill it and judge the system until it is back."""
    with postgres() as started:
        yield started


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    """As the server."""
    with kafka() as started:
        yield started


class Apart:
    """`downburst scheduler` or `downburst latency-service` with the hub's settings."""

    def __init__(self, hub: WholeHub, command: str, name: str) -> None:
        self._log = hub.directory / f"{name}.log"
        with self._log.open("wb") as log:
            argv = [*hub.prefix, DOWNBURST, command, "--settings", str(hub.directory / "settings.toml")]
            self.process = subprocess.Popen(argv, stdout=log, stderr=log)
        running.note(self.process)

    def says(self, words: str) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        return words in self._log.read_text()


def test_two_schedulers_beside_a_hub(tmp_path: Path, server: Postgres, broker: Kafka) -> None:
    more = f'[kafka]\nservers = "{broker.address}"\n[scheduler]\napart = true\n'
    hub = WholeHub(tmp_path / "hub", ledger_url=server.url(server.database()), more=more).start()
    first = Apart(hub, "scheduler", "first")
    wait_for("the first to schedule", lambda: first.says("at work as scheduler"), 60)
    second = Apart(hub, "scheduler", "second")
    wait_for("the second to stand by", lambda: second.says("this one stands by"), 60)
    sites = _sites(hub, tmp_path)
    _arrives_by(hub, "unicast")

    first.process.kill()
    killed = time.monotonic()
    hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"})
    _arrives_by(hub, "multicast")
    print(f"the other scheduler's plan was carried out {time.monotonic() - killed:.1f} s after the first was killed")
    assert second.says("at work as scheduler")

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


def test_two_latency_services_beside_a_hub_count_every_receipt_once(
    tmp_path: Path, server: Postgres, broker: Kafka
) -> None:
    url = server.url(server.database())
    more = f'[kafka]\nservers = "{broker.address}"\nprefix = "receipts"\n'
    hub = WholeHub(tmp_path / "hub", ledger_url=url, top="latency_apart = true", more=more).start()
    services = [Apart(hub, "latency-service", name) for name in ("first", "second")]
    wait_for("one to be at work", lambda: any(one.says("at work as latency service") for one in services), 60)
    wait_for("one to stand by", lambda: any(one.says("this one stands by") for one in services), 60)
    first, second = sorted(services, key=lambda one: one.says("stands by"))
    site = enrolled(hub, tmp_path)
    source = Source(hub)
    source.start()
    source.more(30)
    first.process.kill()
    source.more(30)
    wait_for("the second to be at work", lambda: second.says("at work as latency service"), 60)
    broker.kill()
    source.more(30)
    broker.start()
    server.kill()
    source.more(30)
    server.start()
    source.more(30)
    source.finish()
    wait_for("all products at the site", lambda: source.lacking_at(site) == set())
    counted_once(url, len(source.acknowledged))
    second.process.terminate()
    assert second.process.wait(30) == 0
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
    """Waits until the sites get the feed by this transport: the plan went from scheduler to hub, node and sites."""

    def found() -> bool:
        sites = hub.ask("GET", "/v1/overview")["sites"]
        served = [feed["transport"] for site in sites for feed in site["feeds"] if feed["transport"]]
        return served == [transport] * 2

    wait_for(f"the sites to be served by {transport}", found, 60)
