"""Senders beside a hub, over a real PostgreSQL and a real Kafka, with traffic on: killed, drained, the hub killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from downburst.ledger import Ledger
from kit.kafka import Kafka, kafka
from kit.patience import wait_for
from kit.postgres import Postgres, postgres
from kit.sender_scene import Scene

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as started:
        yield started


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as started:
        yield started


@pytest.fixture
def scene(tmp_path: Path, server: Postgres, broker: Kafka) -> Scene:
    return Scene(tmp_path, server, broker)


def test_a_sender_killed_and_one_drained_lose_and_double_nothing(scene: Scene) -> None:
    one = scene.sender_of("NGRID")
    assert scene.sender_of("CONDUIT") is not one, "feeds are shared out"
    scene.source.more(30)
    one.kill_all()
    scene.recovery_s("a sender was killed")
    one.start()
    scene.source.more(30)
    other = scene.sender_of("NGRID")
    assert other is not one
    assert other.drain() == 0
    scene.recovery_s("a sender was drained")
    scene.source.more(30)
    scene.finish()
    counted_once_at_each(scene)
    assert one.drain() == 0
    assert scene.hub.stop() == 0


def test_a_hub_killed_loses_and_doubles_nothing_and_sites_start_without_it(scene: Scene) -> None:
    scene.source.more(30)
    scene.hub.kill_api()
    first = scene.sites[0]
    assert first.stop() == 0
    first.start()
    wait_for("a site that starts while there is no hub is served", lambda: scene.is_served(first), 60)
    scene.hub.start()
    scene.recovery_s("the hub was killed and started")
    scene.source.more(30)
    scene.finish()
    for sender in scene.senders:
        assert sender.drain() == 0
    assert scene.hub.stop() == 0


def counted_once_at_each(scene: Scene) -> None:
    """The ledger counts every receipt of the senders once."""
    wanted = len(scene.source.acknowledged) * len(scene.sites)

    def stored() -> int:
        ledger = Ledger.look_into(scene.url)
        with ledger.transaction(writes=False) as book:
            found = sum(report.stored for report in book.settled.all())
        ledger.close()
        return found

    wait_for("all receipts in the ledger", lambda: stored() >= wanted, 60)
    assert stored() == wanted
