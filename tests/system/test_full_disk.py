"""A full disk: products are refused with a sentence, acknowledged ones arrive, and recovery needs only space."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from downburst.ledger.storage.databases import JOURNAL_ROOM_BYTES
from integration.conftest import DOWNBURST, RunningHub, Starter, until
from kit.capabilities import needs
from kit.node import HubNode, SiteNode

pytestmark = [pytest.mark.system, pytest.mark.root]
DISK_BYTES = 40_000_000
PRODUCT_BYTES = 1_000_000


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path, stack)


@pytest.fixture
def hub(starter: Starter, tmp_path: Path) -> RunningHub:
    """A hub whose data directory is a small disk of its own, visible only to its process and gone with it."""
    needs("root")
    directory = tmp_path / "hub"
    directory.mkdir()
    script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh", str(DISK_BYTES), str(directory), DOWNBURST]
    running = starter.hub(command=prefix)
    limits = {"retention_bytes": 10 * DISK_BYTES}
    running.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID", "class": "grid", **limits})
    return running


def test_a_full_disk_loses_nothing_acknowledged(starter: Starter, hub: RunningHub) -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    hub.ask("POST", "/v1/sites/a.example/subscriptions", 201, json={"feed": "NGRID"})
    starter.receiver(hub, "a.example", hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"])
    until("the site connects", lambda: hub.ask("GET", "/v1/overview")["sites"][0]["connected"])
    disk = Path(f"/proc/{hub.process.pid}/root{hub.directory}")
    until("room for changes", lambda: (disk / "ledger.sqlite-wal").stat().st_size >= JOURNAL_ROOM_BYTES)
    (disk / "other").write_bytes(bytes(2 * PRODUCT_BYTES))
    stored, problem = fill(hub)
    assert len(stored) > 10, "the disk was full too early to tell"
    assert (problem["status"], problem["code"]) == (507, "disk-full"), problem
    assert re.search("free (some )?space", str(problem["detail"])), "the upload or the log found no room"
    received = until(
        "all acknowledged products",
        lambda: files if len(files := starter.received("a.example")) >= len(stored) else None,
    )
    assert sorted(received.values()) == sorted(stored)
    assert hub.client.get("/livez").is_success
    problem = until("health names the disk", lambda: failing(hub, "store"))
    assert "free some space" in str(problem["detail"])
    fill_to_the_last_byte(disk)
    hub.ask("PATCH", "/v1/feeds/NGRID", json={"retention_bytes": 4 * PRODUCT_BYTES})
    # The feed's only segment is the one in use: its log needs the space of a few new files to leave it.
    (disk / "other").unlink()
    until("there is room again", lambda: put(hub, "afterwards", b"x" * 1000) == 201, patience_s=90)


def failing(hub: RunningHub, probe: str) -> dict[str, object] | None:
    """The problem of `/healthz`, once it names a probe."""
    answer = hub.client.get("/healthz")
    problem: dict[str, object] = answer.json()
    probes = problem.get("probes")
    named = isinstance(probes, dict) and probes.get(probe, "ok") != "ok"
    return problem if answer.status_code == 503 and named else None


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that outlives the hub on it."""
    needs("root")
    directory = tmp_path / "hub"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.parametrize("ends_by", [signal.SIGKILL, signal.SIGTERM])
def test_finding_15_a_hub_starts_on_a_full_disk_and_reports_it(
    starter: Starter, small_disk: Path, monkeypatch: pytest.MonkeyPatch, ends_by: signal.Signals
) -> None:
    monkeypatch.setenv("DOWNBURST_RESERVE_BYTES", "6000000")
    hub = starter.hub(data_dir=small_disk)
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID", "class": "grid", "retention_bytes": 10 * DISK_BYTES})
    until("the reserve is held", (small_disk / "reserve").exists)
    stored, _ = fill(hub)
    fill_to_the_last_byte(small_disk)
    hub.stop(ends_by)
    again = starter.hub(data_dir=small_disk, http=hub.http, sites=hub.sites)
    assert not (small_disk / "reserve").exists()
    faults = [fault["sentence"] for fault in again.ask("GET", "/v1/overview")["faults"]]
    assert any("the disk was full at the start" in sentence for sentence in faults), faults
    assert again.ask("GET", "/v1/status")["feeds"][0]["products"] == len(stored)
    (small_disk / "filler").unlink()
    assert put(again, "afterwards", b"x" * 1000) == 201
    until("health is good again", lambda: again.client.get("/healthz").is_success)


def test_a_receiver_whose_log_can_not_be_written_goes_on(node: HubNode, tmp_path: Path) -> None:
    node.feed("NGRID")
    site = SiteNode(tmp_path / "one", node.address, prefix=["sh", "-c", 'exec "$@" 2> /dev/full', "sh"])
    node.site("one", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    node.wait_connected("one")
    node.put("NGRID", "a", b"content")
    assert len(site.wait_received(1)) == 1
    assert site.stop() == 0


def fill(hub: RunningHub) -> tuple[list[bytes], dict[str, object]]:
    """Puts products until one is refused; returns the acknowledged ones and the problem."""
    stored: list[bytes] = []
    while True:
        content = os.urandom(PRODUCT_BYTES)
        answer = hub.client.put(f"/v1/feeds/NGRID/products/{len(stored)}", content=content)
        if answer.status_code != 201:
            problem: dict[str, object] = answer.json()
            return stored, problem
        stored.append(content)


def fill_to_the_last_byte(disk: Path) -> None:
    """Other content of the disk takes what is left."""
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"x" * 4096)


def put(hub: RunningHub, product_id: str, content: bytes) -> int:
    return hub.client.put(f"/v1/feeds/NGRID/products/{product_id}", content=content).status_code
