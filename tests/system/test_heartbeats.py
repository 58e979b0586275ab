"""Silent loss: a site that is connected, reports that all is well, and delivers nothing to its consumers."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import RunningHub, Starter, until
from kit.capabilities import needs
from kit.node import SiteNode
from kit.read_only import OWN_MOUNTS, read_only
from kit.swarm import Swarm

pytestmark = pytest.mark.system

QUICK = {"HEARTBEAT_S": "0.5", "HEARTBEAT_LATE_S": "2", "LOOK_S": "0.5", "END_AFTER_S": "1"}


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(tmp_path, stack)


@pytest.fixture
def hub(starter: Starter, monkeypatch: pytest.MonkeyPatch) -> RunningHub:
    for name, value in QUICK.items():
        monkeypatch.setenv(f"DOWNBURST_ALARMS__{name}", value)
    running = starter.hub()
    running.ask("POST", "/v1/feeds", 201, json={"feed": "NGRID"})
    return running


def enrol(hub: RunningHub, site: str, file: Path, pattern: str = ".*") -> None:
    hub.ask("POST", "/v1/sites", 201, json={"site": site})
    hub.ask("POST", f"/v1/sites/{site}/subscriptions", 201, json={"feed": "NGRID", "pattern": pattern})
    file.parent.mkdir(parents=True, exist_ok=True)
    token = hub.ask("POST", f"/v1/sites/{site}/tokens", 201)["token"]
    with file.open("a") as tokens:
        tokens.write(token + "\n")


def heartbeats(hub: RunningHub, site: str) -> dict[str, Any]:
    found: dict[str, Any] = hub.ask("GET", f"/v1/sites/{site}")["heartbeats"].get("NGRID", {})
    return found


def alarms(hub: RunningHub) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hub.ask("GET", "/v1/alarms")["items"]
    return found


def comes_out(hub: RunningHub, site: str) -> Callable[[], bool]:
    """A condition that holds once a heartbeat came out after this call."""
    before = heartbeats(hub, site).get("came_out")
    return lambda: heartbeats(hub, site).get("came_out") not in (None, before)


@pytest.mark.root
def test_a_site_whose_files_can_not_be_written_is_noticed_and_its_return_too(hub: RunningHub, tmp_path: Path) -> None:
    needs("root")
    site = SiteNode(tmp_path / "site", hub.sites, prefix=OWN_MOUNTS)
    enrol(hub, "near.example", site.token_file, pattern="^wanted")
    site.start()
    try:
        until("a heartbeat comes out", comes_out(hub, "near.example"))
        hub.ask("PUT", "/v1/feeds/NGRID/products/wanted", 201, content=b"a product")
        site.wait_received(1)
        assert alarms(hub) == []
        with read_only(site.process.pid, site.directory / "received"):
            (alarm,) = until("the alarm", lambda: alarms(hub))
            assert (alarm["kind"], alarm["site"], alarm["feed"]) == ("heartbeat", "near.example", "NGRID")
            assert "it acknowledges the products that it gets" in alarm["sentence"]
            assert "received files" in alarm["next_step"]
        until("the end of the alarm", lambda: not alarms(hub))
        assert [name for name, _ in site.wait_received(1).values()] == ["wanted"], "no consumer sees a heartbeat"
        (feed,) = hub.ask("GET", "/v1/overview")["feeds"]
        assert (feed["products"], feed["latency"]["distribution_ms"]["count"]) == (1, 1), "and no figure counts one"
    finally:
        site.stop()


def test_a_receiver_that_acknowledges_and_loses_is_noticed_and_the_others_are_not_blamed(
    hub: RunningHub, tmp_path: Path
) -> None:
    enrol(hub, "good.example", tmp_path / "good")
    enrol(hub, "losing.example", tmp_path / "losing")
    good = Swarm(hub.sites, tmp_path / "good", ["--receive"]).start()
    losing = Swarm(hub.sites, tmp_path / "losing", ["--receive", "--swallow"]).start()
    try:
        problem = hub.ask("PUT", "/v1/feeds/NGRID/products/downburst:heartbeat:1", 400, content=b"a product")
        assert "the hub's own heartbeats" in problem["detail"], "no source makes one"
        hub.ask("PUT", "/v1/feeds/NGRID/products/one", 201, content=b"a product")
        (alarm,) = until("the alarm", lambda: alarms(hub))
        assert (alarm["kind"], alarm["site"]) == ("heartbeat", "losing.example")
        until("a heartbeat comes out at the other", comes_out(hub, "good.example"))
    finally:
        good.stop()
        losing.stop()


def test_a_heartbeat_that_travels_by_a_multicast_leg_comes_out_and_one_that_is_held_up_is_missed(
    hub: RunningHub, tmp_path: Path
) -> None:
    names = ("near.example", "far.example")
    sites = [SiteNode(tmp_path / name, hub.sites) for name in names]
    for name, site in zip(names, sites, strict=True):
        enrol(hub, name, site.token_file)
        hub.ask("PATCH", f"/v1/sites/{name}", json={"multicast_interface": "127.0.0.1"})
        site.start()
    try:
        hub.ask("PUT", "/v1/feeds/NGRID/pin", json={"transport": "multicast"})
        until("both hear the group", lambda: all(transport(hub, name) == "multicast" for name in names))
        carried = leg_bytes(hub)
        for name in names:
            until(f"a heartbeat comes out at {name}", comes_out(hub, name))
        until("the leg carried it", lambda: leg_bytes(hub) > carried)
        assert alarms(hub) == []
        assert all(transport(hub, name) == "multicast" for name in names)
        sites[0].process.send_signal(signal.SIGSTOP)
        (alarm,) = until("the alarm", lambda: alarms(hub))
        assert (alarm["kind"], alarm["site"]) == ("heartbeat", "near.example")
        sites[0].process.send_signal(signal.SIGCONT)
        until("the end of the alarm", lambda: not alarms(hub))
    finally:
        for site in sites:
            site.process.send_signal(signal.SIGCONT)
            site.stop()


def transport(hub: RunningHub, name: str) -> str | None:
    """The current transport of the feed to a site."""
    (site,) = (one for one in hub.ask("GET", "/v1/overview")["sites"] if one["site"] == name)
    return next((feed["transport"] for feed in site["feeds"] if feed["feed"] == "NGRID"), None)


def leg_bytes(hub: RunningHub) -> int:
    """The bytes that the multicast legs of the feed have sent so far."""
    (plan,) = (one for one in hub.ask("GET", "/v1/plans") if one["feed"] == "NGRID")
    return sum(leg["egress_bytes"] for leg in plan["legs"] if leg["transport"] == "multicast")
