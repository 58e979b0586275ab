"""A hub of several nodes from a site's view: it follows its feeds to their nodes and back, with one credential."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from downburst.foundation.file_names import decode
from kit.node import HubNode, Line, SiteNode, node_binary
from kit.patience import wait_for
from kit.ports import free_port
from kit.senders import nodes_of

pytestmark = [pytest.mark.system]

SITE, MOVED, KEPT = "unl.edu", "NGRID", "CONDUIT"


class Hub:
    """The hub's own node, and one that sends for it with a key signed by the first."""

    def __init__(self, home: Path) -> None:
        self.own = HubNode(home / "own", name="hub").start()
        address = f"127.0.0.1:{free_port()}"
        line = {"address": address} | self._signed(home / "sender")
        self.sender = HubNode(home / "sender", name="hub", listen=address, options={"sender": line}).start()
        for node in (self.own, self.sender):
            for feed in (MOVED, KEPT):
                node.feed(feed)
        wishes = [{"feed": feed, "pattern": ".*", "not_pattern": None} for feed in (MOVED, KEPT)]
        self.site = SiteNode(home / SITE, self.own.address)
        self.own.site(SITE, *wishes, token_file=self.site.token_file)
        self.sender.sites, self.sender.credentials = self.own.sites, self.own.credentials

    def serve(self, version: int, **feeds_of: list[str]) -> None:
        """Sends both nodes a new assignment: `sender=[...]`, `own=[...]`, or none: all to the hub's own node."""
        for node in (self.own, self.sender):
            node.nodes_version = version
            addresses = {"sender": self.sender.address, "own": "nobody:1"}
            node.nodes[SITE] = [{"address": addresses[who], "feeds": feeds} for who, feeds in feeds_of.items()]
            node.tell_sites()

    def _signed(self, directory: Path) -> Line:
        data_dir = directory / "data"
        ask = json.dumps({"id": 1, "do": "sender-key", "data_dir": str(data_dir)}) + '\n{"id": 2, "do": "stop"}\n'
        answered = subprocess.run(
            [node_binary(), "hub"], input=ask, capture_output=True, text=True, check=True, timeout=60
        )
        key = json.loads(answered.stdout.splitlines()[0])["public_key"]
        signed = self.own.do("certify", public_key=key)
        return {"certificate": signed["certificate"], "authority": signed["authority"]}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)
    yield made
    for process in (made.site, made.own, made.sender):
        if process.process.poll() is None:
            process.stop()


def test_feeds_go_to_a_sender_and_come_back_with_the_same_credential(hub: Hub) -> None:
    hub.site.start()
    wait_for("the site has begun at the hub", partial(has_begun, hub.site), 60)
    hub.own.put(MOVED, "first", b"1")
    comes(hub.site, "first")
    hub.sender.tell_sites()
    hub.serve(1, sender=[MOVED, KEPT])
    wait_for("the sender serves", lambda: nodes_of(hub.site) == {hub.sender.address: [KEPT, MOVED]}, 60)
    # Its log has another epoch here, so the feed continues by time; the test is about the node that is heard.
    hub.sender.put(MOVED, "second", b"2")
    comes(hub.site, "first", "second")
    hub.own.put(MOVED, "unheard", b"3")
    hub.serve(2)
    hub.own.put(MOVED, "third", b"4")
    comes(hub.site, "first", "second", "unheard", "third")
    assert "the hub listed its nodes that serve this site" in hub.site.log()


def test_each_receipt_is_counted_once_however_often_feeds_go_to_another_node(hub: Hub) -> None:
    hub.site.start()
    wait_for("the site has begun at the hub", partial(has_begun, hub.site), 60)
    hub.sender.tell_sites()
    put = []
    for version in range(1, 7):
        # Products at the moment of the change count too, so there is no wait.
        for number in range(30):
            put.append(f"{version}-{number}")
            hub.own.put(MOVED, put[-1], b"grid")
        hub.serve(version, **({"sender": [MOVED, KEPT]} if version % 2 else {}))
        wait_for("the site to be where it notified", partial(is_where_told, hub, version), 60)
    comes(hub.site, *put)
    wait_for("all receipts at the nodes", lambda: counted(hub) >= len(put), 30)
    assert counted(hub) == len(put)


def test_a_site_that_starts_while_the_hub_is_away_finds_the_sender_it_was_told_of(hub: Hub) -> None:
    hub.site.start()
    wait_for("the site has begun at the hub", partial(has_begun, hub.site), 60)
    hub.serve(1, sender=[MOVED, KEPT])
    wait_for("the sender serves", lambda: nodes_of(hub.site) != {}, 60)
    assert hub.site.stop() == 0
    hub.own.kill()
    hub.site.start()
    wait_for("the sender serves again", lambda: nodes_of(hub.site) != {}, 60)
    hub.sender.put(KEPT, "without a hub", b"1")
    comes(hub.site, "without a hub")


def test_a_hub_that_is_a_site_stays_at_the_other_hubs_own_node(hub: Hub, tmp_path: Path) -> None:
    hub.site.start()
    wait_for("the site has begun at the hub", partial(has_begun, hub.site), 60)
    lower = HubNode(tmp_path / "lower", name="lower").start()
    try:
        lower.feed(MOVED)
        token = hub.own.site("hub-lower", {"feed": MOVED, "pattern": ".*", "not_pattern": None})
        line = {"upstream": "hub", "address": hub.own.address, "token": token, "feeds": []}
        lower.do("upstreams", upstreams=[line])
        hub.own.wait_connected("hub-lower")
        hub.own.nodes["hub-lower"] = [{"address": hub.sender.address, "feeds": [MOVED]}]
        hub.serve(1, sender=[MOVED, KEPT])
        wait_for("the sender serves the site", lambda: nodes_of(hub.site) != {}, 60)
        hub.own.put(MOVED, "as ever", b"1")
        wait_for("the product at the lower hub", lambda: lower.do("status")["upstreams"][0]["stored"] == 1, 60)
    finally:
        lower.stop()


def is_where_told(hub: Hub, version: int) -> bool:
    """By odd versions the sender serves both feeds, by even ones the hub's own node does."""
    return nodes_of(hub.site) == ({hub.sender.address: [KEPT, MOVED]} if version % 2 else {})


def counted(hub: Hub) -> int:
    """The number of products that the site reported as stored, at either node."""
    batches = [path for node in (hub.own, hub.sender) for path in (node.directory / "batches").glob("*.json")]
    return sum(line["stored"] for path in batches for line in json.loads(path.read_text())["settled"])


def has_begun(site: SiteNode) -> bool:
    return len(list((site.directory / "state/positions").glob("*.cbor"))) == len((MOVED, KEPT))


def has(site: SiteNode, *wanted: str) -> bool:
    """True if the site has these products and no others; numbers of two logs may be the same, so ids count."""
    root = site.directory / "received"
    found = [decode(str(path.relative_to(root))).product_id for path in root.rglob("*") if path.is_file()]
    return sorted(found) == sorted(wanted)


def comes(site: SiteNode, *wanted: str) -> None:
    wait_for(f"{wanted} at the site", partial(has, site, *wanted), 60)
