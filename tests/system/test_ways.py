"""Sites come by the relays that the hub names: they move over and back, and stay where a way leads nowhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.node import SiteNode
from kit.patience import wait_for
from kit.relay_world import RelayWorld, relay_world

pytestmark = [pytest.mark.system, pytest.mark.root]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RelayWorld]:
    with relay_world(tmp_path) as world:
        yield world


def tell(world: RelayWorld, *chains: str) -> None:
    """Has the hub name these chains of relays for the site."""
    world.hub.ways["far"] = list(chains)
    world.hub.tell_sites()


def host_of_session(world: RelayWorld) -> str:
    """The host from which the present session comes to the hub."""
    connected = [event for event in world.hub.events_named("session") if event["state"] == "connected"]
    return str(connected[-1]["peer"].rsplit(":", 1)[0])


def wait_from(world: RelayWorld, host: str) -> None:
    wait_for(f"a session from {host}", lambda: host_of_session(world) == world.lab.address(host))


def sessions(site: SiteNode) -> int:
    return site.log().count("connected site")


def begin_to_send(world: RelayWorld, site: SiteNode) -> None:
    """Sends products, and returns while they are on their way."""
    before = len(world.put)
    world.send(20)
    wait_for("some products", lambda: len(site.received()) >= before + 3)
    assert len(site.received()) < len(world.put), "products are on their way"


def test_a_site_moves_to_the_named_relay_and_back_in_mid_stream_and_nothing_is_lost_or_doubled(
    world: RelayWorld,
) -> None:
    relay = world.relay("relay", world.hub.address)
    site = world.begun()
    begin_to_send(world, site)
    tell(world, relay.address)
    wait_from(world, "relay")
    world.complete(site)
    assert (sessions(site), len(relay.lines("tunnel site"))) == (2, 1), site.log()

    tell(world, relay.address)
    begin_to_send(world, site)
    tell(world)
    wait_from(world, "far")
    wait_for("the end of the tunnel", lambda: relay.lines("tunnel ended"))
    world.complete(site)
    assert sessions(site) == 3, site.log()
    assert site.log().count("the session moves") == 2
    assert "refused" not in site.log(), site.log()


def test_a_site_that_is_started_again_comes_by_the_relay_and_moves_once(world: RelayWorld) -> None:
    relay = world.relay("relay", world.hub.address)
    tell(world, relay.address)
    site = world.begun()
    wait_from(world, "relay")
    world.send(3)
    world.complete(site)
    relay.kill()
    world.send(3)
    world.complete(site)
    assert host_of_session(world) == world.lab.address("far"), "the direct way is the last resort"
    assert site.log().count("the session moves") == 1
    assert sessions(site) == 3, site.log()


def test_a_dead_relay_leaves_the_session_where_it_is(world: RelayWorld) -> None:
    site = world.begun()
    tell(world, f"{world.lab.address('relay')}:7379")
    wait_for("the trial", lambda: "leads nowhere, and the session stays" in site.log())
    world.send(5)
    world.complete(site)
    assert sessions(site) == 1, site.log()


def test_the_choice_of_the_sites_administrator_stands(world: RelayWorld) -> None:
    relay, second = world.relay("relay", world.hub.address), world.relay("second", world.hub.address)
    site = world.begun("--via", second.address)
    tell(world, relay.address)
    sentence = f"by the relay {relay.address}; the choice of its administrator (--via) stands"
    wait_for("the line in the site's log", lambda: sentence in site.log())
    world.send(5)
    world.complete(site)
    assert host_of_session(world) == world.lab.address("second")
    assert (sessions(site), relay.lines("tunnel site")) == (1, [])
    assert site.log().count(sentence) == 1


def test_an_impossible_relay_is_refused_by_one_sentence_and_the_rest_of_the_line_stands(world: RelayWorld) -> None:
    relay = world.relay("relay", world.hub.address)
    site = world.begun()
    tell(world, "nowhere", relay.address)
    fault = world.hub.wait_event(event="fault", site="far")
    assert "not all relays of site far can be used: nowhere" in fault["sentence"]
    assert "write HOST:PORT" in fault["sentence"]
    wait_from(world, "relay")
    world.send(2)
    world.complete(site)
