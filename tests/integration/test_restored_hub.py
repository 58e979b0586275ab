"""A hub that is lost with its disk, and rebuilt from a backup: its sites return by themselves."""

import shutil
import signal
from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until
from integration.test_hub_api import overview_site, put

pytestmark = pytest.mark.all


def test_sites_come_back_to_a_restored_hub_without_a_new_token(starter: Starter, tmp_path: Path) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "IDS|DDPLUS", "class": "observation"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    hub.ask("POST", "/v1/sites/a.example/subscriptions", 201, json={"feed": "IDS|DDPLUS"})
    receiver = starter.receiver(hub, "a.example", hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"])
    until("the site connects", lambda: overview_site(hub, "a.example")["connected"])
    before = [put(hub, f"before {number}", b"x" * number).json()["sequence"] for number in range(5)]

    backup = tmp_path / "hub.dbb"
    written = hub.command("backup", str(backup), "--data-dir", str(hub.directory))
    assert (written.returncode, written.stderr) == (0, "")
    assert "1 feeds, 1 sites, 1 credentials, 1 subscriptions" in written.stdout

    # A restored backup cannot contain these.
    later = [put(hub, f"later {number}", b"y" * number).json()["sequence"] for number in range(5)]
    until("the site has all", lambda: len(starter.received("a.example")) == 10)
    node = hub.node_pid()
    hub.stop(signal.SIGKILL)
    until("its node ends too", lambda: has_ended(node))
    shutil.rmtree(hub.directory)

    restored = hub.command("restore", str(backup), "--data-dir", str(hub.directory))
    assert (restored.returncode, restored.stderr) == (0, "")
    again = starter.hub(http=hub.http, sites=hub.sites)
    until("the site comes back", lambda: overview_site(again, "a.example")["connected"])
    assert receiver.poll() is None, "the same receiver, which was never told"
    after = [put(again, f"after {number}", b"z" * number).json()["sequence"] for number in range(5)]
    assert min(after) > max(before + later), "no sequence names two products"
    until("the site has what came after", lambda: len(starter.received("a.example")) == 15)
    until("nothing is missing", lambda: settled_to(again) >= max(after))
    assert len(starter.received("a.example")) == 15


def test_an_older_copy_of_the_log_is_known_before_any_site_comes(starter: Starter, tmp_path: Path) -> None:
    hub = starter.hub()
    hub.ask("POST", "/v1/feeds", 201, json={"feed": "IDS|DDPLUS", "class": "observation"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    hub.ask("POST", "/v1/sites/a.example/subscriptions", 201, json={"feed": "IDS|DDPLUS"})
    token = hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"]
    receiver = starter.receiver(hub, "a.example", token)
    until("the site connects", lambda: overview_site(hub, "a.example")["connected"])
    given = [put(hub, f"before {number}", b"x" * number).json()["sequence"] for number in range(5)]
    until("the site has what came before", lambda: len(starter.received("a.example")) == 5)
    assert hub.stop() == 0
    log, copy = hub.directory / "node" / "log", tmp_path / "copy"
    shutil.copytree(log, copy)

    hub = starter.hub(http=hub.http, sites=hub.sites)
    given += [put(hub, f"later {number}", b"y" * number).json()["sequence"] for number in range(5)]
    until("the site has what came later", lambda: len(starter.received("a.example")) == 10)
    receiver.terminate()
    receiver.wait(30)
    given += [put(hub, "stored a moment before the end", b"z").json()["sequence"]]
    assert hub.stop() == 0
    shutil.rmtree(log)
    shutil.copytree(copy, log)

    again = starter.hub(http=hub.http, sites=hub.sites)
    said = [fault["sentence"] for fault in again.ask("GET", "/v1/overview")["faults"]]
    (fault,) = [sentence for sentence in said if "replaced by an older copy" in sentence]
    assert f"had given numbers up to {max(given)}" in fault
    after = [put(again, f"after {number}", b"z" * number).json()["sequence"] for number in range(5)]
    assert min(after) > max(given), "no number names two products, though no site has come yet"
    starter.receiver(again, "a.example", token)
    until("the site has all", lambda: len(starter.received("a.example")) >= 15)
    until("nothing is missing", lambda: settled_to(again) >= max(after))
    names = sorted(path.rsplit("/", 1)[-1] for path in starter.received("a.example"))
    assert len(names) == 15, names


def has_ended(pid: int) -> bool:
    """True if a process is gone; without a parent that waits for it, it stays in the list without a command line."""
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True


def settled_to(hub: RunningHub) -> int:
    (site,) = hub.ask("GET", "/v1/overview")["sites"]
    return max((int(progress["settled_to"]) for progress in site["feeds"]), default=0)
