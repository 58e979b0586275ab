"""`downburst fleet` with senders as child processes, over a real PostgreSQL and a real Kafka, with traffic on."""

import os
import signal
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from kit import running
from kit.kafka import Kafka
from kit.node import SiteNode
from kit.patience import wait_for
from kit.ports import ports_in_a_row
from kit.postgres import Postgres
from kit.senders import nodes_of
from kit.steady_source import Source, enrolled
from kit.whole_hub import DOWNBURST, WholeHub

pytestmark = [pytest.mark.system]


class FleetOfTwo:
    """`downburst fleet` with the hub's own settings file."""

    def __init__(self, hub: WholeHub, first_port: int) -> None:
        self._hub = hub
        self.addresses = {f"127.0.0.1:{first_port + 2 * number}" for number in range(2)}
        self._ready = [f"http://127.0.0.1:{first_port + 2 * number + 1}/health/ready" for number in range(2)]

    def start(self) -> None:
        with (self._hub.directory / "fleet.log").open("ab") as log:
            argv = [DOWNBURST, "fleet", "--settings", "settings.toml"]
            self.process = subprocess.Popen(argv, cwd=self._hub.directory, stdout=log, stderr=log)
        running.note(self.process)
        wait_for("both senders to be ready", self.are_ready, 90)

    def are_ready(self) -> bool:
        assert self.process.poll() is None, self.log()[-4000:]
        with suppress(httpx.TransportError):
            return all(httpx.get(url, timeout=5).is_success for url in self._ready)
        return False

    def senders(self) -> set[int]:
        """Its child processes."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return {int(pid) for pid in task.read_text().split()}

    def log(self) -> str:
        return (self._hub.directory / "fleet.log").read_text(errors="replace")


@pytest.mark.nightly
def test_a_fleet_keeps_its_senders_and_takes_them_along(tmp_path: Path, server: Postgres, broker: Kafka) -> None:
    first_port, *_ = ports_in_a_row(4)
    brokers = f'servers = "{broker.address}"\nprefix = "{tmp_path.name}"\n'
    kafka_section = f'[kafka]\n{brokers}products = "ingest"\nreplication = 1\n'
    fleet_section = f'[fleet]\nkind = "children"\nat_least = 2\nfirst_port = {first_port}\nstep_s = 0.5\n'
    url = server.url(server.database())
    hub = WholeHub(tmp_path / "hub", ledger_url=url, more=kafka_section + fleet_section).start()
    fleet = FleetOfTwo(hub, first_port)
    fleet.start()
    site = enrolled(hub, tmp_path)
    source = Source(hub)
    source.start()
    wait_for("the site to be served by a sender", partial(is_served_by, site, fleet.addresses), 60)

    before = fleet.senders()
    os.kill(min(before), signal.SIGKILL)
    wait_for("another sender instead", lambda: len(fleet.senders() - before) == 1, 60)
    wait_for("both to be ready", fleet.are_ready, 90)
    comes_anew(site, source)

    left = fleet.senders()
    fleet.process.terminate()
    assert fleet.process.wait(90) == 0, fleet.log()[-4000:]
    assert not [pid for pid in left if runs(pid)], "senders are drained before the fleet ends"
    comes_anew(site, source)

    fleet.start()
    left = fleet.senders()
    fleet.process.kill()
    fleet.process.wait(10)
    wait_for("senders to end with a fleet that was killed", lambda: not [pid for pid in left if runs(pid)], 90)
    fleet.start()
    wait_for("the site to be served by a sender", partial(is_served_by, site, fleet.addresses), 60)
    comes_anew(site, source)
    source.finish()
    wait_for("all products at the site", lambda: source.lacking_at(site) == set(), 90)
    fleet.process.terminate()
    assert fleet.process.wait(90) == 0
    assert "Traceback" not in fleet.log()
    assert site.stop() == 0
    assert hub.stop() == 0


def is_served_by(site: SiteNode, addresses: set[str]) -> bool:
    return any("NGRID" in feeds for address, feeds in nodes_of(site).items() if address in addresses)


def comes_anew(site: SiteNode, source: Source) -> None:
    """The site gets a product that is acknowledged after the call."""
    before = set(source.acknowledged)

    def newer() -> set[int]:
        return {sequence for _, sequence in site.received()} & (set(source.acknowledged) - before)

    wait_for("new products at the site", newer, 90)


def runs(pid: int) -> bool:
    """True if the process exists and has not ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
