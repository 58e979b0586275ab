"""A relay that belongs to another hub: it is refused in one sentence, and the site's session stays."""

from pathlib import Path

import pytest

from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.relay import RelayNode

FEED = "CONDUIT"
WISH = {"feed": FEED, "pattern": ".*", "not_pattern": None}


@pytest.fixture
def hubs(tmp_path: Path) -> tuple[HubNode, HubNode]:
    started = HubNode(tmp_path / "ours"), HubNode(tmp_path / "theirs")
    for hub in started:
        hub.start()
        hub.feed(FEED)
    return started


def enrolled(home: Path, of: HubNode, at: HubNode) -> RelayNode:
    """A relay with a token of one hub that asks at this one."""
    token_file = home / "token"
    of.site("campus", token_file=token_file)
    arguments = ["--hub", at.address, "--token-file", str(token_file), "--dir", str(home / "state")]
    return RelayNode(home / "relay.log", to=[], arguments=arguments).start()


def test_a_token_of_another_hub_is_refused(hubs: tuple[HubNode, HubNode], tmp_path: Path) -> None:
    ours, theirs = hubs
    relay = enrolled(tmp_path, theirs, ours)
    (sentence,) = wait_for("the refusal", lambda: relay.lines("is not the hub of this"))[:1]
    assert "UnknownIssuer" in sentence
    assert "check the address, or ask for a new token" in sentence
    assert not (tmp_path / "state" / "credential").exists(), "nothing is half-made"
    assert [one for one in ours.events_named("session") if one["state"] == "connected"] == []
    for process in (relay, ours, theirs):
        process.stop()


def test_a_site_that_is_led_to_it_stays(hubs: tuple[HubNode, HubNode], tmp_path: Path) -> None:
    ours, theirs = hubs
    relay = enrolled(tmp_path, theirs, theirs)
    site = SiteNode(tmp_path / "far", ours.address)
    ours.site("far", WISH, token_file=site.token_file)
    site.start()
    ours.wait_connected("far")
    site.wait_begun(FEED)
    ours.ways["far"] = [relay.address]
    ours.tell_sites()
    wait_for("the trial", lambda: "leads nowhere, and the session stays" in site.log())
    assert f"{ours.address} is no target of this relay" in site.log()
    (refused,) = relay.lines("is no target of this relay")
    assert "status=403" in refused
    ours.put(FEED, "product", b"content")
    assert len(site.wait_received(1)) == 1
    assert site.log().count("connected site") == 1
    for process in (site, relay, ours, theirs):
        process.stop()
