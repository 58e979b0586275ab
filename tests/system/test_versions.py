"""A hub and a site of which one is a release behind: products, breaks, and what waits until both are up to date."""

import time
from pathlib import Path
from typing import Any

import pytest

from kit.node import HubNode, Play, SiteNode
from kit.patience import wait_for

pytestmark = [pytest.mark.system]

OLDER: dict[str, Any] = {"session_versions": [1]}


@pytest.mark.parametrize("older", ["hub", "site"])
def test_an_older_node_is_served_and_a_resend_waits_for_its_update(older: str, tmp_path: Path) -> None:
    hub = HubNode(tmp_path / "hub", options=OLDER if older == "hub" else {}).start()
    arguments = ["--session-versions", "1"] if older == "site" else []
    site = SiteNode(tmp_path / "site", hub.address, arguments=arguments)
    try:
        hub.feed("NGRID")
        hub.site("one", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        site.start()
        hub.wait_connected("one")
        play = Play(hub, "NGRID", seed=11)
        for _ in range(30):
            play.put()
        site.wait_received(30)
        hub.kill()
        hub.start()
        play.put()
        assert site.wait_received(31) == play.acknowledged
        assert hub.drained()
        hub.resends["one"] = [_everything_once_more(number=1)]
        hub.tell_sites()
        play.put()
        assert site.wait_received(32) == play.acknowledged
        assert not hub.events_named("resend"), "version 1 has no word for it"
        _update(hub, site)
        end = hub.wait_event(event="resend", site="one", resend=1)
        assert (end["products"], end["expired"]) == (32, 0)
        play.put()
        assert wait_for("the last one", lambda: play.acknowledged.items() <= site.received().items())
    finally:
        site.stop()
        hub.stop()


def _update(hub: HubNode, site: SiteNode) -> None:
    """Both are started again as what they are."""
    hub.stop()
    assert site.stop() == 0
    hub.options, site.arguments = {}, []
    hub.start()
    site.start()


def _everything_once_more(*, number: int) -> dict[str, Any]:
    return {
        "resend": number,
        "feed": "NGRID",
        "kind": "resend",
        "from_us": 0,
        "to_us": time.time_ns() // 1_000 + 3_600_000_000,
        "wanted": {"pattern": ".*", "not_pattern": None},
        "had": [],
    }
