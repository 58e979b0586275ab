"""Strangers at the sites' port and misbehaving sites are detected, reported and cut off; others lose nothing."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from kit.capabilities import needs
from kit.node import HubNode, Play, SiteNode, Subscribe
from kit.patience import wait_for
from kit.stranger import CLOCK_REQUEST, HELLO, Client, frame, header

pytestmark = pytest.mark.system

STRANGERS_LIMIT = 512
ADMISSION_LIMIT_S = 15
LIVENESS_LIMIT_S = 9
MIB = 1 << 20

Clients = Callable[[], Client]


@pytest.fixture
def clients(node: HubNode) -> Iterator[Clients]:
    """Opens connections that are closed after the test."""
    with ExitStack() as stack:

        def client() -> Client:
            made = Client(node.address)
            stack.callback(made.close)
            return made

        yield client


def test_garbage_costs_the_sites_nothing(
    node: HubNode, subscribe: Subscribe, clients: Clients, tmp_path: Path
) -> None:
    node.feed("NGRID")
    good = subscribe("good", "NGRID")
    node.wait_connected("good")
    secret = credential(node, "odd", "NGRID")
    play = Play(node, "NGRID", seed=3).start()
    before = memory_bytes(node)
    for content in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(5_000), b"\xee" * 100_000):
        client = clients()
        client.say(content)
        client.wait_closed(5)
    noise = header(200, 3) + bytes(3) + b"\xff" + Random(8).randbytes(100_000).replace(b"\0", b"\xff")
    for content in (noise, header(HELLO, 2**32 - 1), header(HELLO, 100) + b"\xff" * 100, header(32, 3) + b"abc"):
        client = clients().secure()
        client.say(content)
        client.wait_closed(5)
    for content in (b"\x0f" * 10_000, header(15, MIB + 1), frame(2, [1, "odd", "hub"]), frame(HELLO, [])):
        client = clients().secure().hello("odd", secret)
        wait_for("session of odd", lambda: connected(node, "odd"))
        client.say(content)
        assert b"\x03\x00\x00" in client.wait_closed(5), "the hub says why"
        wait_for("end of the session", lambda: not connected(node, "odd"))
    closed = [event for event in node.events_named("session") if event["state"] == "closed"]
    assert [event["site"] for event in closed] == ["odd"] * 4
    assert all("broke the protocol" in event["reason"] for event in closed)
    assert_wrong_authority_is_refused(node, tmp_path)
    play.wait_for_more(20)
    play.finish()
    assert node.drained()
    assert good.wait_received(len(play.acknowledged)) == play.acknowledged
    log = (node.directory / "hub.log").read_text()
    assert log.count("the TLS handshake failed") >= 3
    assert log.count("broke the protocol") >= 4
    assert memory_bytes(node) - before < 64 * MIB


def test_half_hellos_have_bounded_memory(node: HubNode, subscribe: Subscribe, clients: Clients) -> None:
    node.feed("NGRID")
    before = memory_bytes(node)
    for _ in range(160):
        clients().secure().say(header(HELLO, MIB) + bytes(MIB - 1))
    event = wait_for("a fault", lambda: next(iter(node.events_named("fault")), None))
    assert "to make room" in event["sentence"]
    assert memory_bytes(node) - before < 160 * MIB
    subscribe("good", "NGRID")
    node.wait_connected("good")


def test_silent_crowds_and_deaf_sites_are_cut_off(node: HubNode, subscribe: Subscribe, clients: Clients) -> None:
    node.feed("NGRID")
    silent = [clients() for _ in range(1_000)]
    half = clients().secure()
    half.say(header(HELLO, 100) + b"x" * 50)
    began = time.monotonic()
    good = subscribe("good", "NGRID")
    node.wait_connected("good")
    assert time.monotonic() - began < 5
    assert open_sockets(node) < STRANGERS_LIMIT + 50
    assert "to make room" in node.wait_event(event="fault")["sentence"]
    deaf = clients().secure().hello("deaf", credential(node, "deaf", "NGRID"))
    talker = clients().secure().hello("talker", credential(node, "talker", "NGRID"))
    revoked = clients().secure().hello("revoked", credential(node, "revoked", "NGRID"))
    node.wait_connected("deaf", "talker", "revoked")
    before = memory_bytes(node)
    arrive_meanwhile(node, good)
    assert memory_bytes(node) - before < 64 * MIB
    revoke(node, "revoked")
    began = time.monotonic()
    while not {"deaf", "talker"} <= {event["site"] for event in ends(node)}:
        talker.say(frame(CLOCK_REQUEST, [0]))
        assert time.monotonic() - began < LIVENESS_LIMIT_S + 4, ends(node)
        time.sleep(0.2)
    reasons = {event["site"]: event["reason"] for event in ends(node)}
    assert set(reasons) == {"deaf", "talker", "revoked"}
    assert reasons["talker"] == "the site did not read the data sent to it"
    assert reasons["deaf"] in ("the site sent nothing in time", reasons["talker"])
    wait_for("end of all strangers", lambda: open_sockets(node) < 20, ADMISSION_LIMIT_S)
    for client in (*silent, half, deaf, revoked):
        client.wait_closed(2)
    assert connected(node, "good")


def test_a_second_receiver_is_busy_until_the_first_is_dead(
    node: HubNode, subscribe: Subscribe, clients: Clients, tmp_path: Path
) -> None:
    node.feed("NGRID")
    first = subscribe("one", "NGRID")
    node.wait_connected("one")
    play = Play(node, "NGRID", seed=4)
    play.put()
    first.wait_received(1)
    second = SiteNode(tmp_path / "second", node.address)
    copy_state(first, second)
    second.start()
    try:
        refused = node.wait_event(event="session", state="refused")
        assert "another receiver is active as site one" in refused["reason"]
        wait_for("the refusal", lambda: "another receiver is active" in second.log())
        play.put()
        first.wait_received(2)
        first.kill()
        wait_for("the second to take over", lambda: len(connections(node, "one")) == 2)
        play.put()
        # Its state is empty, so the feed begins at its admission.
        assert second.wait_received(1) == dict([max(play.acknowledged.items())])
        assert node.drained()
    finally:
        second.stop()


def test_a_revoked_credential_ends_the_session_within_a_second(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    good, bad = subscribe("good", "NGRID"), subscribe("bad", "NGRID")
    node.wait_connected("good", "bad")
    play = Play(node, "NGRID", seed=5).start()
    play.wait_for_more(5)
    revoke(node, "bad")
    assert bad.process.wait(timeout=5) != 0
    assert "unknown or revoked" in bad.log()
    assert bad.start().process.wait(timeout=5) != 0, "it is not let in again"
    play.wait_for_more(5)
    play.finish()
    assert node.drained()
    assert good.wait_received(len(play.acknowledged)) == play.acknowledged


@pytest.mark.root
def test_a_full_disk_at_a_site_loses_nothing(node: HubNode, subscribe: Subscribe, tmp_path: Path) -> None:
    needs("root")
    node.feed("NGRID")
    good = subscribe("good", "NGRID")
    small = small_disk_site(node, tmp_path)
    node.wait_connected("good", "small")
    play = Play(node, "NGRID", seed=6)
    play.put()
    seen = Path(f"/proc/{small.process.pid}/root{small.directory}")
    inside = SiteNode(seen, small.hub)
    try:
        inside.wait_received(1)
        fill(seen / "filler")
        for _ in range(30):
            play.put()
        good.wait_received(len(play.acknowledged))
        wait_for("a word of the full disk", lambda: "No space left on device" in small.log())
        wait_for("the hub to know", lambda: "is full" in trouble(node, "small"))
        assert trouble(node, "good") == ""
        assert len(inside.received()) < len(play.acknowledged)
        (seen / "filler").unlink()
        received = inside.wait_received(len(play.acknowledged))
        assert received == play.acknowledged == good.received()
        assert node.drained()
        assert not [event for event in ends(node) if event["site"] == "good"]
        wait_for("the end of the trouble", lambda: trouble(node, "small") == "")
    finally:
        small.stop()


def credential(node: HubNode, site: str, feed: str) -> str:
    """Registers a site that already has its credential; returns the secret."""
    secret = secrets.token_urlsafe(32)
    node.sites[site] = [{"feed": feed, "pattern": ".*", "not_pattern": None}]
    node.credentials[site] = [sha256(secret.encode()).hexdigest()]
    node.tell_sites()
    return secret


def revoke(node: HubNode, site: str) -> None:
    """Removes the site's credential; its session ends within a second."""
    assert node.credentials.pop(site)
    node.tell_sites()
    wait_for(f"end of {site}", lambda: site in {event["site"] for event in ends(node)}, 1.0)
    assert not connected(node, site)


def connected(node: HubNode, site: str) -> bool:
    return site in {session["site"] for session in node.do("status")["sessions"]}


def trouble(node: HubNode, site: str) -> str:
    """The reason why a connected site stores nothing, as the hub knows it."""
    sessions = node.do("status")["sessions"]
    feeds = [feed for session in sessions if session["site"] == site for feed in session["feeds"]]
    return " ".join(feed.get("trouble", "") for feed in feeds)


def connections(node: HubNode, site: str) -> list[dict[str, str]]:
    return [event for event in node.events_named("session") if (event["site"], event["state"]) == (site, "connected")]


def ends(node: HubNode) -> list[dict[str, str]]:
    return [event for event in node.events_named("session") if event["state"] == "closed"]


def memory_bytes(node: HubNode) -> int:
    """The private memory of the node; pages of its logs belong to the system."""
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


def open_sockets(node: HubNode) -> int:
    links = Path(f"/proc/{node.process.pid}/fd").iterdir()
    count = 0
    for link in links:
        with suppress(FileNotFoundError):
            count += str(link.readlink()).startswith("socket:")
    return count


def arrive_meanwhile(node: HubNode, good: SiteNode) -> None:
    """Puts far more than any socket holds; a good site has each product immediately."""
    expected = {}
    for number in range(60):
        content = os.urandom(MIB)
        answer = node.put("NGRID", str(number), content)
        expected["NGRID", answer["sequence"]] = (str(number), sha256(content).hexdigest())
    began = time.monotonic()
    assert good.wait_received(len(expected)) == expected
    assert time.monotonic() - began < 3


def assert_wrong_authority_is_refused(node: HubNode, tmp_path: Path) -> None:
    """A site whose token names another authority does not trust the hub, and the hub reports a failed handshake."""
    site = SiteNode(tmp_path / "misled", node.address)
    token = node.site("misled").split(".")
    site.token_file.parent.mkdir()
    site.token_file.write_text(".".join([token[0], "0" * 64, token[2]]))
    site.start()
    try:
        wait_for("distrust", lambda: "UnknownIssuer" in site.log() or "authority" in site.log())
        hub_log = node.directory / "hub.log"
        wait_for("a word of the hub", lambda: "UnknownCA" in hub_log.read_text(), 5)
        assert not connected(node, "misled")
    finally:
        site.stop()


def copy_state(first: SiteNode, second: SiteNode) -> None:
    """Gives a second receiver the credential of the first, and nothing else."""
    identity = next(path for path in first.directory.rglob("identity.json"))
    copied = second.directory / identity.relative_to(first.directory)
    copied.parent.mkdir(parents=True)
    copied.write_bytes(identity.read_bytes())


def small_disk_site(node: HubNode, tmp_path: Path) -> SiteNode:
    """A receiving site on a small disk of its own, visible only to its process and gone with it."""
    token = tmp_path / "small.token"
    node.site("small", {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=token)
    directory = tmp_path / "small"
    script = 'mount -t tmpfs -o size=40000000 tmpfs "$1" && shift && exec "$@"'
    prefix = ["unshare", "--mount", "sh", "-c", script, "sh", str(directory)]
    return SiteNode(directory, node.address, prefix, ["--token-file", str(token)]).start()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4_096))
