"""Receivers at real-time priority: a busy host drops fewer datagrams, and the count of the kernel is on the page."""

import re
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from bench.multicast.small_buffers import Losses, TooBusyError, kernel_drops, lost_beside_loops, reading_of
from playwright.sync_api import Page, expect

from kit.axe import no_serious_finding
from kit.busy import needs_quiet_machine
from kit.capabilities import needs, skip
from kit.page_hub import Hub, go
from kit.patience import wait_for

pytestmark = [pytest.mark.system]


@pytest.mark.alone
@pytest.mark.root
@pytest.mark.parametrize("runs", [1, pytest.param(3, marks=pytest.mark.nightly)])
def test_real_time_priority_saves_four_fifths_of_what_busy_loops_cost(tmp_path: Path, runs: int) -> None:
    needs("root", "netns", "veth", "bridge")
    needs_quiet_machine()
    normal, urgent = [], []
    for number in range(runs):
        try:
            normal.append(lost_beside_loops(tmp_path / f"normal {number}", priority=None, seconds=SECONDS))
            urgent.append(lost_beside_loops(tmp_path / f"urgent {number}", priority=PRIORITY, seconds=SECONDS))
        except TooBusyError as error:
            skip(str(error))
        print(f"normal priority: {normal[-1]}, {normal[-1].percent:.2f} %")
        print(f"SCHED_RR: {urgent[-1]}, {urgent[-1].percent:.2f} %")
    for run in [*normal, *urgent]:
        assert run.reported == run.dropped, "the receiver's count is the kernel's"
    if any(run.standing == "refused" for run in urgent):
        skip("this machine grants no real-time priority")
    assert {run.standing for run in normal} == {"normal"}
    if not _percent(normal):
        skip("the loops cost nothing at normal priority: this machine has processors left for the reader")
    assert _percent(urgent) <= _percent(normal) / 5


@pytest.mark.browser
def test_the_count_on_the_page_is_that_of_the_kernel(hub: Hub, page: Page, tmp_path: Path) -> None:
    """A receiver that stands still while its group goes on has a full buffer: what finds no room is counted."""
    needs("root")
    for name in ("unl.edu", "ucar.edu"):
        hub.receive(name, tmp_path / name, options=["--receive-buffer", "65536"])
    wait_for("a group of both sites", lambda: _on_leg(hub), 60)
    hub.put("NGRID", "first", secrets.token_bytes(100_000))
    wait_for("reading", lambda: _reading(hub), 30)
    receiver = hub.receivers[0]
    receiver.send_signal(signal.SIGSTOP)
    for number in range(8):
        hub.put("NGRID", f"grid {number}", secrets.token_bytes(500_000))
    wait_for("drops", lambda: _drops_of(receiver.pid) or None, 20)
    receiver.send_signal(signal.SIGCONT)
    dropped = wait_for("the kernel's count at the hub", lambda: _agreed(hub, receiver.pid), 60)
    page.goto(hub.command("login", "--link").stdout.strip())
    page.get_by_role("button", name="Sign in").click()
    go(page, "Sites")
    expect(page.get_by_test_id("site unl.edu")).to_be_visible()
    page.goto(f"{hub.url}#/sites/unl.edu")
    row = page.get_by_test_id("readings").get_by_role("row").filter(has_text="NGRID")
    expect(row).to_be_visible()
    shown = row.get_by_role("cell").first
    assert int(re.sub(r"\D", "", shown.inner_text())) == dropped
    expect(row).to_contain_text("start the receiver with --receive-buffer ")
    no_serious_finding(page)
    assert reading_of(tmp_path / "unl.edu", "NGRID")["dropped"] == dropped
    metrics = hub.client.get("/metrics").text
    assert f'downburst_receive_dropped_datagrams_total{{feed="NGRID",site="unl.edu"}} {dropped}' in metrics
    found = hub.command("sites", "show", "unl.edu").stdout
    assert f"group of NGRID: {dropped} datagrams dropped for want of room" in found
    doctor = hub.command("doctor", "--data-dir", str(hub.data_dir), "--site-dir", str(tmp_path / "unl.edu")).stdout
    assert "start the receiver with --receive-buffer " in doctor
    assert "rdma is not considered" in doctor


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setenv("DOWNBURST_MULTICAST__NETWORK", "239.79.0.0/24")
    monkeypatch.setenv("DOWNBURST_MULTICAST__INTERFACE", "127.0.0.1")
    with Hub(tmp_path / "hub") as started:
        started.post("feeds", feed="NGRID")
        for name in ("unl.edu", "ucar.edu"):
            started.post("sites", site=name, organisation="University", allow=["NGRID"])
            started.post(f"sites/{name}/subscriptions", feed="NGRID")
        yield started


def _percent(runs: list[Losses]) -> float:
    return median(run.percent for run in runs)


def _on_leg(hub: Hub) -> bool:
    hub.client.put("/v1/feeds/NGRID/pin", json={"transport": "multicast"})
    plans = hub.client.get("/v1/feeds/NGRID/plans", params={"limit": 1}).json()
    return bool(plans) and plans[0]["transport"] == "multicast"


def _reading(hub: Hub) -> dict[str, Any] | None:
    session = hub.client.get("/v1/sites/unl.edu").json()["session"]
    reading: dict[str, Any] | None = session["readings"].get("NGRID")
    return reading


def _agreed(hub: Hub, pid: int) -> int | None:
    """The kernel's count of drops once the hub has the same."""
    dropped, reading = _drops_of(pid), _reading(hub)
    return dropped if dropped and reading and reading["dropped"] == dropped else None


def _drops_of(pid: int) -> int:
    """The drops of a process's UDP sockets; several sites on one machine share the group's port."""
    inodes = {link.readlink().name[8:-1] for link in Path(f"/proc/{pid}/fd").iterdir() if _is_socket(link)}
    lines = Path(f"/proc/{pid}/net/udp").read_text().splitlines()
    table = "\n".join([lines[0], *(line for line in lines[1:] if line.split()[9] in inodes)])
    ports = {int(line.split()[1].rpartition(":")[2], 16) for line in table.splitlines()[1:]}
    return sum(kernel_drops(table, port) for port in ports)


def _is_socket(link: Path) -> bool:
    return link.is_symlink() and link.readlink().name.startswith("socket:[")


PRIORITY, SECONDS = 20, 8.0
