"""A backup is tested: restored aside, compared, started, and a site is served; the running hub is not affected."""

import json
from pathlib import Path

import pytest

from integration.conftest import RunningHub, Starter, until
from integration.test_hub_api import overview_site, put


@pytest.fixture
def hub(starter: Starter) -> RunningHub:
    """A hub with two feeds, a site that received, an administrator, a receiver of alarms and latencies."""
    hub = starter.hub()
    for feed in ("IDS|DDPLUS", "NEXRAD3"):
        hub.ask("POST", "/v1/feeds", 201, json={"feed": feed, "class": "observation"})
    hub.ask("POST", "/v1/sites", 201, json={"site": "a.example"})
    hub.ask("POST", "/v1/sites/a.example/subscriptions", 201, json={"feed": "IDS|DDPLUS"})
    hub.ask("POST", "/v1/users", 201, json={"user": "ada", "role": "admin"})
    wanted = {"receiver": "desk", "kind": "webhook", "address": "http://127.0.0.1:9/alarm"}
    hub.ask("POST", "/v1/alarm-receivers", 201, json=wanted)
    starter.receiver(hub, "a.example", hub.ask("POST", "/v1/sites/a.example/tokens", 201)["token"])
    until("the site connects", lambda: overview_site(hub, "a.example")["connected"])
    for number in range(3):
        put(hub, f"before {number}", b"x" * number)
    until("latencies are there", lambda: hub.ask("GET", "/v1/latency"))
    return hub


@pytest.mark.all
def test_a_backup_makes_a_hub_that_serves_a_site(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = backed_up(hub, tmp_path)
    before, kept = backup.read_bytes(), tmp_path / "kept"
    # Settings of the running hub, none of which a drill may use.
    monkeypatch.setenv("DOWNBURST_LEDGER_URL", f"sqlite:///{tmp_path / 'running.sqlite'}")
    done = hub.command("drill", str(backup), "--json", "--keep", str(kept))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["good"]
    about = {finding["about"]: finding["sentence"] for finding in report["findings"]}
    assert "2 feeds" in about["feeds"]
    assert "1 sites, 1 subscriptions" in about["sites"]
    assert "1 credentials" in about["credentials"]
    assert about["users"].startswith("equal to the backup: 1 users")
    assert "deliveries of IDS|DDPLUS" in about["latencies of the hub"]
    assert "each of 2 feeds" in about["site"]
    assert about["end"] == "hub and site ended cleanly"
    assert backup.read_bytes() == before
    assert not (tmp_path / "running.sqlite").exists()
    # The running hub: the same site, connected, and no trace of the drill.
    (site,) = hub.ask("GET", "/v1/sites")
    assert site["site"] == "a.example"
    assert overview_site(hub, "a.example")["connected"]
    assert kept.stat().st_mode & 0o077 == 0
    assert "127.0.0.1:9" not in (kept / "logs" / "hub.log").read_text(), "the copy called a receiver of alarms"
    assert not [process for process in Path("/proc").glob("[0-9]*/cmdline") if str(kept) in text_of(process)]


def text_of(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def backed_up(hub: RunningHub, folder: Path) -> Path:
    backup = folder / "hub.dbb"
    done = hub.command("backup", str(backup), "--data-dir", str(hub.directory))
    assert done.returncode == 0, done.stderr
    return backup
