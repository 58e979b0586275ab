"""A hub that is lost with its disk, and made again from a backup: its sites come back by themselves."""

import shutil
import signal
from pathlib import Path

from integration.conftest import RunningHub, Starter, until
from integration.test_hub_api import overview_site, put


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

    # Nobody who restores the backup can know of these.
    later = [put(hub, f"later {number}", b"y" * number).json()["sequence"] for number in range(5)]
    until("the site has all", lambda: len(starter.received("a.example")) == 10)
    hub.stop(signal.SIGKILL)
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


def settled_to(hub: RunningHub) -> int:
    (site,) = hub.ask("GET", "/v1/overview")["sites"]
    (progress,) = site["feeds"]
    return int(progress["settled_to"])
