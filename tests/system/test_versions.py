"""A hub and a site one release apart, with a made-up next version of the session."""

import time
from pathlib import Path
from typing import Any

import pytest

from kit.node import HubNode, Play, SiteNode
from kit.patience import wait_for

pytestmark = [pytest.mark.system]

NEXT = [2, 1]


@pytest.mark.parametrize("newer", ["hub", "site"])
def test_nodes_of_two_releases_serve_each_other_before_and_after_the_update(newer: str, tmp_path: Path) -> None:
    hub = HubNode(tmp_path / "hub", options=_hub_options(NEXT) if newer == "hub" else {}).start()
    arguments = _site_arguments(NEXT) if newer == "site" else []
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
        _update(hub, site)
        play.put()
        assert site.wait_received(32) == play.acknowledged
        hub.resends["one"] = [_everything_once_more(number=1)]
        hub.tell_sites()
        end = hub.wait_event(event="resend", site="one", resend=1)
        assert (end["products"], end["expired"]) == (32, 0)
        play.put()
        assert wait_for("the last one", lambda: play.acknowledged.items() <= site.received().items())
    finally:
        site.stop()
        hub.stop()


def test_a_site_that_speaks_no_version_of_the_hub_is_refused_with_the_remedy(tmp_path: Path) -> None:
    hub = HubNode(tmp_path / "hub").start()
    site = SiteNode(tmp_path / "site", hub.address, arguments=_site_arguments([2]))
    try:
        hub.site("one", token_file=site.token_file)
        site.start()
        wait_for("the refusal", lambda: "this hub speaks version 1 of the session" in site.log())
        site.stop()
        site.arguments = []
        site.start()
        hub.wait_connected("one")
    finally:
        site.stop()
        hub.stop()


def _update(hub: HubNode, site: SiteNode) -> None:
    """Restarts both as the next release."""
    hub.stop()
    assert site.stop() == 0
    hub.options, site.arguments = _hub_options(NEXT), _site_arguments(NEXT)
    hub.start()
    site.start()


def _hub_options(versions: list[int]) -> dict[str, Any]:
    return {"session_versions": versions}


def _site_arguments(versions: list[int]) -> list[str]:
    return ["--session-versions", ",".join(map(str, versions))]


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
