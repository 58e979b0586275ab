"""Feeds' logs on a real Kafka: one node ingests, others send, and brokers and nodes are killed during that."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import pytest

from kit.capabilities import skip
from kit.kafka import PASSWORD, USER, Kafka, kafka
from kit.node import HubNode, Line, NodeError, Play, SiteNode
from kit.patience import wait_for
from kit.programs import with_kafka
from kit.whole_hub import WholeHub

pytestmark = [pytest.mark.system]

FEED = "NGRID"
# Longer than the 15 s of a transaction, and the 10 s between two checks by the broker.
LONGER_S = 30

OpenNode = Callable[..., HubNode]


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    """A broker for these tests alone, which kill and suspend it."""
    with kafka() as started:
        yield started


@pytest.fixture
def binary() -> str:
    """The node with support for Kafka."""
    program = os.environ.get("DOWNBURST_NODE_KAFKA") or with_kafka()
    if program is None:
        skip("downburst-node-kafka is not built; run: make test-cluster")
    return str(program)


@pytest.fixture
def start(tmp_path: Path, broker: Kafka, binary: str) -> Iterator[OpenNode]:
    """Starts nodes of one hub with one feed, each in a role and a directory of its own."""
    nodes: list[HubNode] = []

    def opened(name: str, role: str, **more: object) -> HubNode:
        shared: Line = {"servers": broker.address, "prefix": tmp_path.name, "role": role, "replication": 1} | more
        node = HubNode(tmp_path / name, name=name, program=binary, options={"shared_log": shared}).start()
        nodes.append(node)
        node.feed(FEED)
        return node

    yield opened
    for node in nodes:
        if node.process.poll() is None:
            node.stop()


def site_of(node: HubNode, directory: Path) -> SiteNode:
    site = SiteNode(directory, node.address)
    node.site(directory.name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
    site.start()
    # A new site begins with the products after its subscription.
    wait_for("the site is subscribed", lambda: "subscribed" in site.log(), 120)
    return site


def can_be_moved(logs: Path, to: Path) -> bool:
    """Moves the logs away once no node holds them."""
    with (logs / FEED / "lock").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        logs.rename(to)
    return True


def has_all(site: SiteNode, play: Play) -> bool:
    return site.received() == play.acknowledged


def has_all_of(site: SiteNode, play: Play) -> bool:
    """Products that were stored and not acknowledged may be there too."""
    return set(play.acknowledged.items()) <= set(site.received().items())


@pytest.mark.smoke
def test_sites_of_a_sender_get_what_another_node_ingests(start: OpenNode, tmp_path: Path) -> None:
    ingest = start("ingest", "ingest")
    sender = start("sender", "sender")
    site = site_of(sender, tmp_path / "site")
    play = Play(ingest, FEED, seed=1)
    for _ in range(30):
        play.put()
    large = bytes(range(256)) * 8_000
    answer = ingest.put(FEED, "large", large)
    play.acknowledged[FEED, answer["sequence"]] = ("large", sha256(large).hexdigest())
    wait_for("the site has what was acknowledged", lambda: has_all(site, play), 120)
    with pytest.raises(NodeError, match="this node keeps a copy of its log") as refused:
        sender.put(FEED, "here", b"here")
    assert refused.value.code == "not-the-writer"
    site.stop()


@pytest.mark.long(33)
def test_brokers_killed_under_ingest_lose_and_double_nothing(start: OpenNode, broker: Kafka, tmp_path: Path) -> None:
    ingest = start("ingest", "ingest")
    sender = start("sender", "sender")
    site = site_of(sender, tmp_path / "site")
    play = Patient(ingest, FEED, seed=2).start()
    play.wait_for_more(20)
    broker.kill()
    fault = wait_for("somebody says that products wait", lambda: said(ingest, "products wait"), 120)
    assert fault["feed"] == FEED
    broker.start()
    wait_for("somebody says that it is over", lambda: said(ingest, "products are stored again"), 120)
    play.wait_for_more(20)
    play.finish()
    wait_for("the site has what was acknowledged", lambda: has_all_of(site, play), 120)
    assert not twice(site, play)
    site.stop()


@pytest.mark.long(33)
def test_a_writer_opens_again_before_the_next_product_and_feeds_begin_as_soon_as_the_broker_has(
    start: OpenNode, broker: Kafka
) -> None:
    ingest = start("ingest", "ingest")
    ingest.put(FEED, "before", b"1")
    broker.kill()
    with pytest.raises(NodeError) as refused:
        ingest.put(FEED, "meanwhile", b"2")
    assert refused.value.code == "brokers-away"
    broker.start()
    ingest.feed("CONDUIT")
    wait_for("it is over, and nobody brought a product", lambda: said(ingest, "products are stored again"), 60)
    ingest.put(FEED, "meanwhile", b"2")
    ingest.put("CONDUIT", "first", b"3")


@pytest.mark.nightly
@pytest.mark.parametrize("still", ["node", "broker", "both"])
def test_who_stands_still_for_longer_than_a_transaction_may_take_goes_on(
    start: OpenNode, broker: Kafka, tmp_path: Path, still: str
) -> None:
    """Brokers abort longer transactions, and then answer as if another writer had come."""
    ingest = start("ingest", "ingest")
    site = site_of(ingest, tmp_path / "site")
    play = Patient(ingest, FEED, seed=5).start()
    play.wait_for_more(20)
    # A product is in transit when the broker stops answering.
    broker.signal(SIGSTOP)
    time.sleep(0.3)
    if still != "broker":
        ingest.process.send_signal(SIGSTOP)
    if still == "node":
        broker.signal(SIGCONT)
    time.sleep(LONGER_S)
    broker.signal(SIGCONT)
    ingest.process.send_signal(SIGCONT)
    wait_for("somebody says that it is over", lambda: said(ingest, "products are stored again"), 60)
    play.wait_for_more(20)
    play.finish()
    assert not said(ingest, "nothing is ingested here")
    wait_for("the site has what was acknowledged", lambda: has_all_of(site, play), 120)
    assert not twice(site, play)
    site.stop()


def test_a_node_killed_under_ingest_loses_nothing_and_another_one_goes_on(start: OpenNode, tmp_path: Path) -> None:
    ingest = start("ingest", "ingest")
    sender = start("sender", "sender")
    site = site_of(sender, tmp_path / "site")
    play = Play(ingest, FEED, seed=3).start()
    play.wait_for_more(25)
    ingest.kill()
    play.finish()
    successor = start("successor", "ingest")
    later = Play(successor, FEED, seed=4)
    later.count = play.count
    for _ in range(10):
        later.put()
    assert not set(play.acknowledged) & set(later.acknowledged), "a number was given twice"
    wanted = play.acknowledged | later.acknowledged
    wait_for("the site has what was acknowledged", lambda: set(wanted.items()) <= set(site.received().items()), 120)
    # A product that was stored and not acknowledged may have come too: the one in transit.
    assert len(site.received()) <= len(wanted) + 1
    site.stop()


def test_a_node_that_was_taken_over_refuses_products_and_sends_those_of_the_other(
    start: OpenNode, tmp_path: Path
) -> None:
    first = start("first", "ingest")
    site = site_of(first, tmp_path / "site")
    first.put(FEED, "one", b"one")
    second = start("second", "ingest")
    second.put(FEED, "two", b"two")
    with pytest.raises(NodeError) as refused:
        first.put(FEED, "three", b"three")
    assert refused.value.code == "not-the-writer"
    assert said(first, "another hub ingests feed NGRID now")
    second.put(FEED, "four", b"four")
    received = site.wait_received(3, 120)
    assert sorted(product_id for product_id, _ in received.values()) == ["four", "one", "two"]
    site.stop()


@pytest.mark.nightly
def test_a_sender_that_lost_its_copy_reads_it_again(start: OpenNode, tmp_path: Path) -> None:
    ingest = start("ingest", "ingest")
    sender = start("sender", "sender")
    answers = [ingest.put(FEED, f"{n}", f"{n}".encode()) for n in range(5)]
    numbers, epoch = [answer["sequence"] for answer in answers], answers[0]["epoch"]
    sender.kill()
    sender.directory.rename(tmp_path / "lost")
    anew = start("sender", "sender")
    site = site_of(anew, tmp_path / "site")
    later = ingest.put(FEED, "later", b"later")["sequence"]
    wait_for("the copy is as far", lambda: anew.do("status")["feeds"][0]["head"] == later, 120)
    held = {item["sequence"] for item in anew.do("products", feed=FEED, epoch=epoch, sequences=numbers)["products"]}
    assert held == set(numbers), "the same products under the same numbers"
    wait_for("the site has the latest", lambda: (FEED, later) in site.received(), 120)
    site.stop()


def test_a_hub_that_lost_its_machine_goes_on_where_it_was(broker: Kafka, binary: str, tmp_path: Path) -> None:
    kafka_section = f'[kafka]\nservers = "{broker.address}"\nprefix = "{tmp_path.name}"\nproducts = "ingest"\n'
    hub = WholeHub(tmp_path / "hub", more=kafka_section).start()
    hub.ask("POST", "/v1/feeds", json={"feed": FEED, "class": "grid"})
    before = [hub.ask("PUT", f"/v1/feeds/{FEED}/products/p{n}", content=b"%d" % n) for n in range(3)]
    hub.kill_api()
    logs = hub.directory / "data/node/log"
    wait_for("the node has let go of its logs", lambda: can_be_moved(logs, tmp_path / "lost"), 60)
    hub.start()
    again = hub.ask("PUT", f"/v1/feeds/{FEED}/products/p1", content=b"1")
    later = hub.ask("PUT", f"/v1/feeds/{FEED}/products/p3", content=b"3")
    assert again["duplicate_of"] == before[1]["sequence"]
    assert (later["epoch"], later["stored"]) == (before[0]["epoch"], True)
    assert later["sequence"] > before[2]["sequence"]
    hub.stop()


def test_passwords_and_tls_are_used(start: OpenNode, broker: Kafka, tmp_path: Path) -> None:
    assert start("good", "ingest", **secured(broker, tmp_path)).put(FEED, "one", b"one")["size"] == 3


@pytest.mark.nightly
def test_wrong_passwords_and_authorities_are_told(start: OpenNode, broker: Kafka, tmp_path: Path) -> None:
    secure = secured(broker, tmp_path)
    with pytest.raises(NodeError, match="refused user or password"):
        start("stranger", "ingest", **secure | {"sasl_user": "stranger"})
    with pytest.raises(NodeError, match="an unknown authority"):
        start("trusting", "ingest", **{**secure, "ca_file": None})


def secured(broker: Kafka, home: Path) -> Line:
    """The settings for access to the broker by TLS and with a password."""
    password = home / "password"
    password.write_text(PASSWORD)
    return {
        "servers": f"127.0.0.1:{broker.tls_port}",
        "security": "sasl-tls",
        "ca_file": str(broker.ca_file),
        "sasl_mechanism": "PLAIN",
        "sasl_user": USER,
        "sasl_password_file": str(password),
    }


class Patient(Play):
    """Sends a refused product again, as a source does."""

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.put()
            except NodeError as refused:
                if refused.code != "brokers-away":
                    raise
            except (BrokenPipeError, ValueError):
                return


def twice(site: SiteNode, play: Play) -> list[str]:
    """The identifiers of products that arrived under two numbers."""
    ids = [product_id for product_id, _ in site.received().values()]
    return sorted({one for one in ids if ids.count(one) > 1})


def said(node: HubNode, part: str) -> Line | None:
    return next((event for event in node.events_named("fault") if part in event["sentence"]), None)
