"""The clock's state, read from a chronyd that runs for the test, without any right."""

import getpass
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from downburst.host.host_clock import ClockSource, HostClock, of_chrony, of_kernel, read_host_clock
from kit.capabilities import skip
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.ports import free_port


@dataclass
class Chrony:
    """A daemon with ports of its own, which leaves the machine's clock alone."""

    port: int
    command_port: int
    process: subprocess.Popen[bytes]

    def clock(self) -> HostClock:
        """As `doctor` and the metrics read it."""
        ask = ("chronyc", "-h", "127.0.0.1", "-p", str(self.command_port), "-c", "tracking")
        return read_host_clock({ClockSource.CHRONY: ask})


def started(directory: Path, *lines: str) -> Chrony:
    directory.mkdir()
    port, command_port = free_port(), free_port()
    settings = [
        *(f"user {getpass.getuser()}", f"port {port}", f"cmdport {command_port}", f"pidfile {directory}/pid"),
        *("bindaddress 127.0.0.1", "bindcmdaddress 127.0.0.1", "cmdallow 127.0.0.1", "allow 127.0.0.1", *lines),
    ]
    file = directory / "chrony.conf"
    file.write_text("\n".join(settings) + "\n")
    daemon = shutil.which("chronyd", path=f"{os.environ['PATH']}:/usr/sbin")
    if daemon is None or shutil.which("chronyc") is None:
        skip("chrony is not installed: scripts/setup.sh names the package")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen([daemon, "-U", "-x", "-d", "-f", str(file)], stdout=log, stderr=log)
    return Chrony(port, command_port, process)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Chrony]:
    chrony = started(tmp_path / "server", "local stratum 3")
    yield chrony
    chrony.process.kill()
    chrony.process.wait()


@pytest.fixture
def client(tmp_path: Path, server: Chrony) -> Iterator[Chrony]:
    upstream = f"server 127.0.0.1 port {server.port} iburst minpoll -2 maxpoll 0"
    chrony = started(tmp_path / "client", upstream)
    yield chrony
    chrony.process.kill()
    chrony.process.wait()


def test_a_client_that_follows_a_server_is_in_step_within_its_error(client: Chrony) -> None:
    wait_for("chronyd's answer", lambda: client.clock().source is ClockSource.CHRONY, 30)
    wait_for("a reference", lambda: client.clock().synchronised, 60)
    # The first answer may come late on a busy machine, and its delay counts as error until the next ones.
    wait_for("an error of less than a second", lambda: client.clock().error_us < 1_000_000, 60)
    clock = client.clock()
    assert clock.error_us > 0, "server and client have the same clock, and no daemon knows it without an error"
    assert clock.reference in ("127.0.0.1", "localhost")


def test_a_site_reports_its_own_clock_and_the_daemon_beside_it(tmp_path: Path, server: Chrony) -> None:
    wait_for("chronyd", lambda: server.clock().source is ClockSource.CHRONY, 30)
    kernel = of_kernel()
    hub = HubNode(tmp_path / "hub").start()
    site = SiteNode(tmp_path / "far", hub.address)
    hub.site("far", token_file=site.token_file)
    try:
        site.start()
        hub.wait_connected("far")
        (found,) = wait_for("the site's word on its clock", lambda: reported(hub), 30)
    finally:
        site.stop()
        hub.stop()
    assert found["daemon"] in ("chrony", "timemaster", "ptp"), "of several daemons, one that steers the clock counts"
    assert found["synchronised"] is kernel.synchronised
    assert found["error_us"] >= kernel.error_us // 2, "both ask the kernel"


def reported(hub: HubNode) -> list[dict[str, Any]]:
    """The clocks of all sites that report theirs."""
    return [one["site_clock"] for one in hub.do("status")["sessions"] if "site_clock" in one]


def test_a_daemon_without_a_server_follows_no_reference(tmp_path: Path) -> None:
    chrony = started(tmp_path / "alone")
    try:
        wait_for("chronyd's answer", lambda: chrony.clock().source is ClockSource.CHRONY, 30)
        assert not chrony.clock().synchronised
    finally:
        chrony.process.kill()
        chrony.process.wait()


def test_an_answer_of_another_version_is_no_clock() -> None:
    assert of_chrony("1,2,3") is None
