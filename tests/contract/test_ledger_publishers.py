"""Publishers of WIS2 in the ledger, with the products that they announce."""

from dataclasses import replace
from datetime import timedelta

import pytest

from downburst.domain.bridges import Broker
from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.publishers import Outgoing, Place, Step, Wis2Publisher
from downburst.domain.feeds import Feed
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger import Transaction
from downburst_app.wiring.housekeeping import forget_outgoing
from factories import SOME_TIME

PUBLISHER = Wis2Publisher(
    "synop",
    "IDS|DDPLUS",
    "us-unidata",
    "core/weather/surface-based-observations/synop",
    "urn:wmo:md:us-unidata:synop",
    Broker("mqtts://broker.example", "node", "secret"),
    "https://hub.example",
)


def outgoing(number: int, *, of: int | None = None, step: Step = Step.WAITING) -> Outgoing:
    """The notification with this number, of a data id."""
    return Outgoing(
        publisher="synop",
        epoch="7",
        sequence=number,
        data_id=f"us-unidata/synop/{number if of is None else of}",
        product_id=f"SMVX{number}",
        id=f"31e9d66a-cd83-4174-9429-{number:012}",
        kind="canonical",
        topic=PUBLISHER.topic,
        payload=b"{}",
        digest="ab" * 64,
        size_bytes=number,
        made_at=SOME_TIME + timedelta(seconds=number),
        step=step,
    )


DATASET = Dataset(
    "Synops",
    "Of ships.",
    "Unidata",
    "a@unidata.example",
    "https://unidata.example",
    "USA",
    ("a", "b", "c"),
    SOME_TIME,
)


@pytest.fixture
def published(tx: Transaction) -> Transaction:
    tx.feeds.add(Feed("IDS|DDPLUS"))
    tx.feeds.add(Feed("NGRID"))
    tx.wis2.publishers.add(PUBLISHER)
    return tx


def test_a_publisher_comes_back_and_goes_with_all_that_it_sent(published: Transaction, clock: FakeClock) -> None:
    publishers = published.wis2.publishers
    kept = replace(PUBLISHER, created_at=clock.now())
    assert publishers.all() == [kept] == [publishers.one("synop")]
    with pytest.raises(AlreadyThere, match="'synop' already"):
        publishers.add(PUBLISHER)
    with pytest.raises(NotFound, match="no feed 'NONE'"):
        publishers.change(replace(PUBLISHER, feed="NONE"))
    published.wis2.outbox.put([outgoing(1)])
    publishers.move("synop", Place("7", 1))
    publishers.remove("synop")
    assert publishers.place("synop") is None
    assert published.wis2.outbox.newest("synop") == []
    with pytest.raises(NotFound, match="publishers list"):
        publishers.one("synop")


def test_a_dataset_comes_back(published: Transaction) -> None:
    for bounds in (None, (-90.0, 5.0, -55.0, 30.0)):
        dataset = replace(DATASET, bounds=bounds)
        changed = published.wis2.publishers.change(replace(PUBLISHER, dataset=dataset))
        assert published.wis2.publishers.one("synop") == changed
        assert changed.dataset == dataset


def test_a_publisher_goes_on_where_it_was_and_with_another_feed_begins_anew(published: Transaction) -> None:
    publishers = published.wis2.publishers
    assert publishers.place("synop") is None
    publishers.move("synop", Place("7", 1))
    publishers.move("synop", Place("7", 2))
    publishers.change(replace(PUBLISHER, enabled=True))
    assert publishers.place("synop") == Place("7", 2)
    publishers.change(replace(PUBLISHER, feed="NGRID"))
    assert publishers.place("synop") is None


def test_notifications_wait_in_their_order_until_they_are_announced(published: Transaction, clock: FakeClock) -> None:
    outbox = published.wis2.outbox
    outbox.put([outgoing(2), outgoing(1), outgoing(3, step=Step.REFUSED)])
    assert [one.sequence for one in outbox.waiting("synop")] == [1, 2]
    outbox.settle(outgoing(1), Step.ANNOUNCED)
    assert [one.sequence for one in outbox.waiting("synop")] == [2]
    assert outbox.count("synop") == {Step.ANNOUNCED: 1, Step.WAITING: 1, Step.REFUSED: 1}
    (announced,) = outbox.newest("synop", Step.ANNOUNCED)
    assert announced.announced_at == clock.now()
    assert outbox.expire(SOME_TIME + timedelta(minutes=1), "the broker was away") == 1
    assert outbox.newest("synop", Step.EXPIRED)[0].reason == "the broker was away"


def test_the_last_notification_of_a_data_id_and_that_of_a_product_are_found(published: Transaction) -> None:
    outbox = published.wis2.outbox
    outbox.put([outgoing(1, of=1), outgoing(2, of=1), outgoing(3, of=1, step=Step.REFUSED), outgoing(4, of=4)])
    latest = outbox.latest("synop", ["us-unidata/synop/1", "us-unidata/synop/9"])
    assert {data_id: one.sequence for data_id, one in latest.items()} == {"us-unidata/synop/1": 2}
    assert outbox.of_product("synop", "7", 2) == outgoing(2, of=1)
    for publisher, epoch, sequence in (("synop", "7", 3), ("synop", "8", 2), ("other", "7", 2)):
        assert outbox.of_product(publisher, epoch, sequence) is None
    outbox.forget_before(SOME_TIME + timedelta(seconds=3))
    assert [one.sequence for one in outbox.newest("synop")] == [4, 3]


def test_announcements_that_no_broker_took_are_given_up_after_a_day_and_forgotten_after_two(
    published: Transaction, clock: FakeClock
) -> None:
    outbox, made_at = published.wis2.outbox, clock.now()
    outbox.put([replace(outgoing(1), made_at=made_at), replace(outgoing(2), made_at=made_at + timedelta(hours=12))])
    for hours, steps in ((23, [Step.WAITING] * 2), (2, [Step.WAITING, Step.EXPIRED]), (24, [Step.EXPIRED])):
        clock.advance(hours * 3_600)
        forget_outgoing(published)
        assert [one.step for one in outbox.newest("synop")] == steps
