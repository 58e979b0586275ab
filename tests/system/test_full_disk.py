"""A full disk: products are refused with a sentence, what was acknowledged arrives, and space is all it takes."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from integration.conftest import DOWNBURST, RunningHub, Starter, until
from kit.capabilities import needs

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.beside]
DISK_BYTES = 40_000_000
PRODUCT_BYTES = 1_000_000


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path, stack)


@pytest.fixture
def hub(starter: Starter, tmp_path: Path) -> RunningHub:
    """A hub whose data directory is a small disk of its own, seen by nobody else and gone with its process."""
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
    stored, problem = fill(hub)
    assert len(stored) > 10, "the disk was full too early to tell"
    assert (problem["status"], problem["code"]) == (507, "disk-full"), problem
    assert "free space" in str(problem["detail"])
    received = until(
        "all acknowledged products",
        lambda: files if len(files := starter.received("a.example")) >= len(stored) else None,
    )
    assert sorted(received.values()) == sorted(stored)
    assert hub.client.get("/healthz").is_success
    hub.ask("PATCH", "/v1/feeds/NGRID", json={"retention_bytes": 4 * PRODUCT_BYTES})
    until("there is room again", lambda: put(hub, "afterwards", b"x" * 1000) == 201, patience_s=90)


def fill(hub: RunningHub) -> tuple[list[bytes], dict[str, object]]:
    """Puts products until one is refused; returns those acknowledged and the problem."""
    stored: list[bytes] = []
    while True:
        content = os.urandom(PRODUCT_BYTES)
        answer = hub.client.put(f"/v1/feeds/NGRID/products/{len(stored)}", content=content)
        if answer.status_code != 201:
            problem: dict[str, object] = answer.json()
            return stored, problem
        stored.append(content)


def put(hub: RunningHub, product_id: str, content: bytes) -> int:
    return hub.client.put(f"/v1/feeds/NGRID/products/{product_id}", content=content).status_code
