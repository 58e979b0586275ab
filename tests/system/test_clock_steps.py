"""A wall clock that is set back an hour, at the hub or at a site: everything arrives once, and the hub continues."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.node import HubNode, Play, SiteNode
from kit.patience import wait_for

pytestmark = [pytest.mark.system]
HOUR_US = 3_600_000_000


@pytest.fixture
def steps(tmp_path: Path) -> dict[str, Path]:
    """The file that steps the clock, by host."""
    return {host: tmp_path / f"{host}.step" for host in ("hub", "stepping", "steady")}


@pytest.fixture
def hub(tmp_path: Path, steps: dict[str, Path]) -> Iterator[HubNode]:
    node = HubNode(tmp_path / "hub", prefix=stepped(steps["hub"])).start()
    yield node
    node.stop()


@pytest.fixture
def sites(hub: HubNode, tmp_path: Path, steps: dict[str, Path]) -> Iterator[dict[str, SiteNode]]:
    started = {}
    hub.feed("NGRID", retention_hours=0.5)
    for name in ("stepping", "steady"):
        site = SiteNode(tmp_path / name, hub.address, prefix=stepped(steps[name]))
        hub.site(name, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        started[name] = site.start()
    for site in started.values():
        site.wait_begun("NGRID")
    yield started
    for site in started.values():
        site.stop()


@pytest.mark.parametrize("host", ["hub", "stepping"])
@pytest.mark.parametrize("transport", ["unicast", "multicast"])
def test_an_hour_back_loses_nothing(
    hub: HubNode, sites: dict[str, SiteNode], steps: dict[str, Path], host: str, transport: str
) -> None:
    if transport == "multicast":
        hub.multicast("NGRID", version=2, leg=41, rate_bps=300_000_000, sites=list(sites))
        for name in sites:
            hub.wait_event(event="leg", site=name, state="joined")
    play = Play(hub, "NGRID", seed=41).start()
    play.wait_for_more(30)
    offset = offsets(hub)["stepping"]
    steps[host].write_text(str(-HOUR_US))
    play.wait_for_more(30)
    sites["stepping"].kill()
    play.wait_for_more(30)
    sites["stepping"].start()
    play.wait_for_more(10)
    play.finish()
    assert hub.drained()
    for site in sites.values():
        assert site.wait_received(len(play.acknowledged)) == play.acknowledged
    change = HOUR_US if host == "hub" else -HOUR_US
    # Each exchange measures the offset again; it follows the step within the window of eight.
    wait_for("the new offset", lambda: abs(offsets(hub)["stepping"] - offset - change) < 5_000_000, 60)
    assert not [event for event in hub.events_named("session") if event["site"] == "steady" and is_end(event)]


def offsets(hub: HubNode) -> dict[str, int]:
    """Each site's clock relative to the hub's, once they were compared."""
    sessions = hub.do("status")["sessions"]
    found = {session["site"]: session.get("clock_offset_us") for session in sessions}
    return {site: offset if offset is not None else 0 for site, offset in found.items()}


def is_end(event: dict[str, str]) -> bool:
    return event["state"] == "closed"


def stepped(file: Path) -> list[str]:
    """Runs a node whose wall clock follows the file."""
    return ["env", f"DOWNBURST_TEST_CLOCK_STEP_FILE={file}"]
