"""Faults of a system under load: each soon comes first on the page and in the command, with cause and next step.

Faults are made in the system itself: processes, disks, networks and servers. The limits in seconds are promises.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Page

from kit.capabilities import needs
from kit.drill.on_hosts import GroupScene, page_at_the_hub
from kit.drill.scene import Scene, SteadySource, scene
from kit.drill.shown import Watcher
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.postgres import Postgres, postgres

DISK_BYTES = 40_000_000
SILENCE_PAUSES = 40
"""The usual pauses of a feed are known after this number of them; a hub waits for a hundred by default."""
PAUSES_KNOWN_S = SILENCE_PAUSES + 20.0
"""Arrivals are told by the second, and the faults before it cost some."""

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Scene]:
    needs("chromium")
    with scene(tmp_path) as made:
        made.site("ucar.edu")
        yield made


def test_a_killed_site_and_a_killed_node_are_first_until_they_are_back(small: Scene, page: Page) -> None:
    watcher = Watcher(small, page)
    kill_a_site(small, watcher)
    kill_the_node(small, watcher)


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    needs("root")
    directory = tmp_path / "small-disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(directory)], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.long(110)
@pytest.mark.root
def test_a_full_disk_a_ledger_away_and_a_silent_source_are_first_within_their_limits(
    tmp_path: Path, server: Postgres, small_disk: Path, page: Page
) -> None:
    needs("chromium")
    alarms = f"[alarms]\nsilence_pauses = {SILENCE_PAUSES}\n"
    with scene(tmp_path, ledger_url=server.url(server.database()), more=alarms) as made:
        source = made.source("LOCAL")
        made.site("unl.edu", small_disk, feeds=["LOCAL"])
        watcher = Watcher(made, page)
        fill_the_disk(small_disk, watcher)
        kill_the_ledger(server, watcher)
        silence_a_source(source, watcher)


@pytest.mark.root
@pytest.mark.parametrize("to_its_end", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_lossy_member_of_a_group_is_first_until_it_may_hear_the_group_again(
    to_its_end: bool, tmp_path: Path
) -> None:
    """Its end takes minutes: a member that was too slow is served by unicast for at least five."""
    needs("root", "netns", "veth", "bridge", "nft-numgen", "chromium")
    members = ["ucar", "unl", "wisc"]
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", *members]))
        made = GroupScene(lab, tmp_path, members)
        stack.callback(made.close)
        watcher = Watcher(made, stack.enter_context(page_at_the_hub(lab, tmp_path)))
        lab.loss("unl", 35.0)
        told = ("unl can't keep up with the group of GROUP",)
        watcher.wait_for_first("lossy group member", *told, limit_s=120)
        lab.loss("unl", 0.0)
        if to_its_end:
            watcher.wait_for_end("lossy group member", *told, limit_s=600)


def fill_the_disk(disk: Path, watcher: Watcher) -> None:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4_096)
    told = ("unl.edu can't store LOCAL", "space")
    watcher.wait_for_first("disk of a site full", *told, limit_s=30)
    filler.unlink()
    watcher.wait_for_end("disk of a site full", "unl.edu")


def kill_the_ledger(server: Postgres, watcher: Watcher) -> None:
    server.kill()
    told = ("the ledger has been unavailable since", "products are still received and sent")
    watcher.wait_for_first("ledger away", *told, limit_s=30)
    server.start()
    watcher.wait_for_end("ledger away", *told)


def silence_a_source(source: SteadySource, watcher: Watcher) -> None:
    wait_for("a feed whose habits are known", lambda: source.seconds > PAUSES_KNOWN_S, 2 * PAUSES_KNOWN_S)
    source.fall_silent()
    told = ("no product has come into LOCAL for",)
    watcher.wait_for_first("source silent", *told, limit_s=90)
    source.go_on()
    watcher.wait_for_end("source silent", *told)


def kill_a_site(scene: Scene, watcher: Watcher) -> None:
    site = scene.sites["ucar.edu"]
    site.kill()
    told = ("ucar.edu", "the process at its other end was killed")
    watcher.wait_for_first("site killed", *told, limit_s=60)
    site.start()
    watcher.wait_for_end("site killed", *told)


def kill_the_node(scene: Scene, watcher: Watcher) -> None:
    (node,) = scene.hub.node_pids()
    os.kill(node, signal.SIGKILL)
    told = ("the node ended by signal 9", "a user killed it")
    watcher.wait_for_first("node killed", *told, limit_s=10)
    watcher.wait_for_end("node killed", *told)
    assert scene.hub.node_pids() not in ([], [node])
