"""Reasons why product X is not at site Y: ten real causes, each reported by one command and by the api alike.

One hub with its own node; for each cause a feed, a site, and the product in question.
"""

import json
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.capabilities import needs
from kit.slow_line import SlowLine

pytestmark = [pytest.mark.system]
MEGABYTE = 1_000_000
GONE_FROM_THE_LOG_HOURS = 0.0003
"""About a second."""


@dataclass(frozen=True)
class Case:
    """A feed and a site of its own beside those of the other causes."""

    hub: RunningHub
    starter: Starter
    feed: str
    site: str
    token: str

    def start(self, **given: Any) -> subprocess.Popen[bytes]:
        """Starts the site's receiver, and waits until the hub sees it."""
        process = self.starter.receiver(self.hub, self.site, self.token, **given)
        until(f"{self.site} is connected", self.is_connected)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        until(f"the hub saw {self.site} go", lambda: not self.is_connected())

    def is_connected(self) -> bool:
        sites = self.hub.ask("GET", "/v1/overview")["sites"]
        return any(one["site"] == self.site and one["connected"] for one in sites)

    def put(self, product_id: str, content: bytes = b"content") -> None:
        self.hub.ask("PUT", f"/v1/feeds/{self.feed}/products/{product_id}", 201, content=content)

    def received(self) -> list[bytes]:
        return list(self.starter.received(self.site).values())

    def why(self, product_id: str) -> dict[str, Any]:
        """The answer of the command."""
        ran = self.hub.command("why", product_id, self.site, "--feed", self.feed, "--json")
        assert ran.returncode == 0, ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def wait_for(self, product_id: str, state: str, cause: str | None) -> dict[str, Any]:
        """Waits until the command and the api report this, with the same next step."""
        said: list[dict[str, Any]] = []

        def there() -> dict[str, Any] | None:
            said[:] = [self.why(product_id), self.delivery(product_id)]
            of_command, of_api = ({name: one.get(name) for name in _SAME} for one in said)
            as_wanted = (of_command["state"], of_command["cause"]) == (state, cause)
            return said[0] if as_wanted and of_command == of_api else None

        try:
            return until(f"{product_id} is {state} for {self.site}, because {cause}", there)
        except AssertionError:
            pytest.fail(f"at last it was said: {said}")

    def delivery(self, product_id: str) -> dict[str, Any]:
        """The answer of the api; empty while it knows nothing."""
        asked = {"product": product_id, "site": self.site, "feed": self.feed}
        told = self.hub.ask("GET", "/v1/products/trace", params={**asked, "limit": 1})["products"]
        found: dict[str, Any] = next((one for product in told for one in product["deliveries"]), {})
        return found


_SAME = ("site", "state", "cause", "next_action")
Made = Callable[..., Case]
EVERYTHING: dict[str, Any] = {}


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path_factory.mktemp("why"), stack)


@pytest.fixture(scope="module")
def hub(starter: Starter) -> RunningHub:
    return starter.hub()


@pytest.fixture
def made(hub: RunningHub, starter: Starter, request: pytest.FixtureRequest) -> Made:
    """Creates the objects of a cause, named after the test; the default subscription is the whole feed."""

    def make(*, wish: dict[str, Any] | None = EVERYTHING, retention_hours: float = 1.0) -> Case:
        name = request.node.name.removeprefix("test_").replace("_", "-")
        feed = name.upper()
        hub.ask("POST", "/v1/feeds", 201, json={"feed": feed, "retention_hours": retention_hours})
        hub.ask("POST", "/v1/sites", 201, json={"site": name})
        if wish is not None:
            hub.ask("POST", f"/v1/sites/{name}/subscriptions", 201, json={"feed": feed, **wish})
        token: str = hub.ask("POST", f"/v1/sites/{name}/tokens", 201)["token"]
        return Case(hub, starter, feed, name, token)

    return make


def test_not_subscribed(made: Made) -> None:
    case = made(wish=None)
    case.start()
    case.put("x")
    found = case.wait_for("x", "not-subscribed", "not-subscribed")
    assert found["reason"] == f"the site has no subscription to {case.feed}"
    do(case, found["next_action"].removeprefix("if it should get it: "))
    case.put("y")
    case.wait_for("y", "stored", None)


def test_denied(made: Made) -> None:
    case = made()
    case.start()
    case.hub.ask("PATCH", f"/v1/sites/{case.site}", json={"allow": ["HDS"]})
    case.put("x")
    found = case.wait_for("x", "denied", "denied")
    assert found["reason"] == f"the allow list of the site (HDS) does not cover {case.feed}"
    assert f"PATCH /v1/sites/{case.site}" in found["next_action"]
    assert case.received() == []


def test_filtered(made: Made) -> None:
    case = made(wish={"pattern": "^nam", "not_pattern": "grib2$"})
    case.start()
    case.put("nam.grib2")
    case.put("nam.txt", b"comes")
    case.wait_for("nam.txt", "stored", None)
    found = case.wait_for("nam.grib2", "not-subscribed", "filtered")
    assert "the NOT pattern 'grib2$' excludes it" in found["reason"]
    assert found["next_action"] == f"compare the patterns with the id: downburst sites show {case.site}"
    assert case.received() == [b"comes"]


def test_queued_behind(made: Made) -> None:
    case = made()
    with SlowLine(case.hub.sites, bytes_per_s=100_000) as line:
        case.start(address=line.address)
        for number in range(20):
            case.put(f"large {number}", os.urandom(MEGABYTE))
        case.put("x", os.urandom(50_000))
        found = case.wait_for("x", "waiting", "queued-behind")
        assert "in the hub's queue for this site" in found["reason"]
        assert f"MB of {case.feed}" in found["reason"]
        assert "slower than its subscriptions" in found["next_action"]
        line.bytes_per_s = 50 * MEGABYTE
        case.wait_for("x", "stored", None)


def test_site_down(made: Made) -> None:
    case = made()
    process = case.start()
    case.stop(process)
    case.put("x")
    found = case.wait_for("x", "waiting", "site-down")
    assert "the site is offline since" in found["reason"]
    assert (
        "start its receiver; it gets the product when it reconnects; the log keeps it until" in found["next_action"]
    )
    case.start()
    case.wait_for("x", "stored", None)


def test_left_the_log(made: Made) -> None:
    case = made(retention_hours=GONE_FROM_THE_LOG_HOURS)
    process = case.start()
    case.put("first")
    case.wait_for("first", "stored", None)
    case.stop(process)
    case.put("x")
    for moment in ("while it is away", "when it is back"):
        found = case.wait_for("x", "expired", "left-the-log")
        assert found["reason"] == "its bytes left the hub's log before the site got them", moment
        assert "keep more hours (downburst log advise shows how many fit)" in found["next_action"]
        if moment == "while it is away":
            case.start()


def test_too_old(made: Made) -> None:
    case = made(wish={"max_age_s": 2})
    process = case.start()
    case.put("first")
    case.wait_for("first", "stored", None)
    case.stop(process)
    case.put("x", b"old")
    for moment in ("while it is away", "when it is back"):
        found = case.wait_for("x", "expired", "too-old")
        assert "older than the 2.0 s that the subscription allows" in found["reason"], moment
        assert "raise the subscription's maximum age" in found["next_action"]
        if moment == "while it is away":
            case.start()
            case.put("second", b"new")
            case.wait_for("second", "stored", None)
    assert b"old" not in case.received()


def test_digest_mismatch(made: Made) -> None:
    case = made()
    content = os.urandom(3 * MEGABYTE)
    with SlowLine(case.hub.sites, bytes_per_s=3 * MEGABYTE) as line:
        case.start(address=line.address)
        with damaged_spool(case.starter.home / "sites" / case.site / "spool"):
            case.put("x", content)
            found = case.wait_for("x", "rejected", "digest-mismatch")
        assert "did not match its digest at the site three times in a row" in found["reason"]
        assert found["next_action"].startswith("check the site's memory and network for the cause of corruption")
        do(case, found["next_action"].partition("to send it again: ")[2])
        until("the product, sent again", lambda: case.received() == [content])
        case.wait_for("x", "stored", None)


def test_action_failed(made: Made, tmp_path: Path) -> None:
    case = made()
    rules = tmp_path / "pqact.conf"
    rules.write_text('ANY\t^bad\tEXEC\t-wait sh -c "test -e mended || { echo no station table; exit 1; }"\n')
    process = case.start(arguments=("--actions", str(rules), "--action-attempts", "1"))
    for product in ("good", "bad 1", "bad 2"):
        case.put(product)
    newest = case.wait_for("bad 2", "stored", "action-failed")
    assert f"the site's rule {rules}:1 failed for it" in newest["reason"]
    assert "no station table" in newest["reason"]
    earlier = case.wait_for("bad 1", "stored", "action-failed")
    assert "a rule of the site failed for it, as for 1 other products of the feed" in earlier["reason"]
    assert earlier["next_action"] == newest["next_action"]
    case.wait_for("good", "stored", None)
    case.stop(process)
    case.wait_for("bad 1", "stored", "action-failed")
    case.start(arguments=("--actions", str(rules), "--action-attempts", "1"))
    directory = case.starter.home / "sites" / case.site
    (directory / "data/mended").touch()
    retry = newest["next_action"].partition("then run there: ")[2]
    assert retry == "downburst-node actions retry"
    case.starter.node("actions", "retry", "--dir", str(directory))
    for product in ("bad 1", "bad 2"):
        case.wait_for(product, "stored", None)


@pytest.mark.root
def test_disk_full(made: Made) -> None:
    needs("root")
    case = made()
    log = case.starter.home / "sites" / case.site / "log"
    log.mkdir(parents=True)
    script = 'mount -t tmpfs -o size=6M tmpfs "$1" && shift && exec "$@"'
    process = case.start(prefix=["unshare", "--mount", "sh", "-c", script, "sh", str(log)])
    for number in range(8):
        case.put(f"large {number}", os.urandom(MEGABYTE))
    # Of the same size: a small one still fits.
    case.put("x", os.urandom(MEGABYTE))
    found = case.wait_for("x", "waiting", "disk")
    assert f"the site can't store {case.feed}: " in found["reason"]
    assert "free space there" in found["reason"]
    assert "free or repair the disk at the site; it then continues by itself" in found["next_action"]
    inside(process, ["mount", "-o", "remount,size=64M", str(log)])
    case.wait_for("x", "stored", None)
    assert len(case.received()) == 9


def do(case: Case, command: str) -> None:
    """Runs the next action as it is printed."""
    program, *words = shlex.split(command)
    assert program == "downburst", command
    ran = case.hub.command(*words)
    assert ran.returncode == 0, ran.stderr


def inside(process: subprocess.Popen[bytes], command: Sequence[str]) -> None:
    """Runs a command with the process's view of the disks."""
    subprocess.run(["nsenter", f"--mount=/proc/{process.pid}/ns/mnt", *command], check=True, timeout=20)


@contextmanager
def damaged_spool(spool: Path) -> Iterator[None]:
    """A disk that changes its content: the bytes of each arriving product differ from those written."""
    ended = threading.Event()

    def damage() -> None:
        while not ended.wait(0.01):
            for path in spool.glob("*/in-*"):
                try:
                    with path.open("r+b") as file:
                        if file.seek(0, os.SEEK_END) > PLACE + 1:
                            file.seek(PLACE)
                            file.write(os.urandom(8))
                except FileNotFoundError:
                    continue

    thread = threading.Thread(target=damage)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


PLACE = 100_000
