"""Messages of brokers into the ledger: once each, counted by centre, and none that is wrong hurts another."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from contract.test_ledger_publishers import PUBLISHER
from downburst.domain.bridges import Broker, CentreDay, State, Unsettled, Wis2Source
from downburst.domain.bridges.publishers import Place
from downburst.domain.feeds import Feed
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger, Transaction
from downburst_bridges.intake import Heard, Taken, release, take
from downburst_bridges.verdicts import Verdict
from unit.wis2.test_notifications import GOOD

ONE, TWO = "mqtts://one.example", "mqtts://two.example"
TOPIC = "cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"
SOURCE = Wis2Source("dwd", "WIS2", (Broker(ONE), Broker(TWO)), ("cache/a/wis2/#",))


@pytest.fixture
def tx(ledger: Ledger) -> Iterator[Transaction]:
    with ledger.transaction() as opened:
        opened.feeds.add(Feed("WIS2"))
        opened.wis2.sources.add(SOURCE)
        yield opened


def message(number: int, *, of: int = 0, **properties: Any) -> dict[str, Any]:
    """The notification with this number of a data id, which has a digest of its own."""
    found = deepcopy(GOOD)
    found["id"] = f"31e9d66a-cd83-4174-9429-{number:012}"
    digest = {"method": "sha256", "value": f"{of:064}"}
    found["properties"] |= {"data_id": f"de-dwd/synop/{of}", "integrity": digest} | properties
    return found


class Station:
    """A source that hears messages."""

    def __init__(self, tx: Transaction, clock: FakeClock, source: Wis2Source = SOURCE) -> None:
        self._tx, self._clock, self._source = tx, clock, source

    def hears(self, *messages: object, broker: str = ONE, topic: str = TOPIC) -> Taken:
        payloads = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        heard = [Heard(broker, topic, payload, self._clock.now()) for payload in payloads]
        return take(self._tx, self._source, heard)

    def refusals(self, one: object, topic: str) -> list[str]:
        """The sentences about a message that is refused."""
        taken = self.hears(one, topic=topic)
        assert not taken.notices
        return [one.sentence for one in taken.passed_over if one.verdict == Verdict.REFUSED]

    def day(self, centre: str = "de-dwd") -> CentreDay | None:
        days = self._tx.wis2.days.of("dwd", self._clock.now().date())
        return next((day for day in days if day.centre == centre), None)


@pytest.fixture
def station(tx: Transaction, clock: FakeClock) -> Station:
    return Station(tx, clock)


def test_the_same_notification_by_two_brokers_is_one_product(station: Station, tx: Transaction) -> None:
    messages = [message(number, of=number) for number in range(50)]
    taken = station.hears(*messages)
    assert [one.data_id for one in taken.notices] == [f"de-dwd/synop/{number}" for number in range(50)]
    again = station.hears(*messages, broker=TWO)
    assert (again.notices, {one.verdict for one in again.passed_over}) == ([], {Verdict.COPY})
    assert len(tx.wis2.notices.coming("dwd")) == 50
    length = GOOD["links"][0]["length"]
    found = station.day()
    assert found is not None
    assert (found.products, found.bytes, found.copies, found.refused) == (50, 50 * length, 50, 0)


def test_copies_within_one_transaction_are_seen_too(station: Station) -> None:
    taken = station.hears(message(1), message(1), message(2))
    assert (len(taken.notices), len(taken.passed_over)) == (1, 2)


def test_a_message_that_nobody_can_read_hurts_no_other(station: Station) -> None:
    taken = station.hears(b"\xff", message(1, of=1), {}, message(2, of=2))
    assert len(taken.notices) == 2
    assert [one.verdict for one in taken.passed_over] == [Verdict.REFUSED] * 2
    elsewhere = station.hears(message(3, of=3), topic="origin/a/wis2")
    assert (elsewhere.notices, len(elsewhere.passed_over)) == ([], 1)
    found = station.day()
    assert found is not None
    assert found.refused == 2


def test_an_update_is_fetched_in_place_of_what_still_comes(station: Station, tx: Transaction) -> None:
    station.hears(message(1))
    update = message(2, integrity={"method": "sha256", "value": "f" * 64}, pubtime="2026-11-23T05:00:00Z")
    update["links"][0]["rel"] = "update"
    assert len(station.hears(update).notices) == 1
    (coming,) = tx.wis2.notices.coming("dwd")
    assert coming.last.identity[1] == "f" * 64


def test_a_deletion_is_recorded_and_nothing_is_fetched(station: Station, tx: Transaction) -> None:
    station.hears(message(1))
    gone = message(2, pubtime="2026-11-23T05:00:00Z")
    gone["links"][0]["rel"] = "deletion"
    taken = station.hears(gone)
    assert (taken.notices, taken.passed_over[0].verdict) == ([], Verdict.DELETE)
    assert tx.wis2.notices.last("dwd", ["de-dwd/synop/0"])["de-dwd/synop/0"].state is State.DELETED
    assert tx.wis2.notices.coming("dwd") == []


def test_a_centre_over_its_budget_waits_until_the_next_day_and_others_do_not(
    tx: Transaction, clock: FakeClock
) -> None:
    length = GOOD["links"][0]["length"]
    limited = replace(SOURCE, bytes_per_day=2 * length)
    station = Station(tx, clock, limited)
    taken = station.hears(*(message(number, of=number) for number in range(5)))
    assert (len(taken.notices), [one.verdict for one in taken.passed_over]) == (2, [Verdict.WAIT] * 3)
    other = station.hears(message(9, of=9), topic=TOPIC.replace("de-dwd", "fr-meteofrance"))
    assert len(other.notices) == 1, "each centre has its own"
    assert tx.wis2.notices.unsettled("dwd") == [
        Unsettled("de-dwd", 2, 3, 3 * length), Unsettled("fr-meteofrance", coming=1)
    ]  # fmt: skip
    assert release(tx, limited) == 0, "nothing is left today"
    clock.advance(86_400)
    assert release(tx, limited) == 2
    assert tx.wis2.notices.unsettled("dwd")[0] == Unsettled("de-dwd", 4, 1, length)
    found = station.day()
    assert found is not None
    assert (found.products, found.bytes) == (2, 2 * length), "they count on the day on which they come"
    assert release(tx, SOURCE) == 1, "without a limit nothing waits"


def test_a_product_larger_than_the_rest_of_the_day_lets_smaller_ones_pass(tx: Transaction, clock: FakeClock) -> None:
    limited = replace(SOURCE, bytes_per_day=100)
    station = Station(tx, clock, limited)
    for number, length in enumerate((90, 95, 5)):
        one = message(number, of=number)
        one["links"][0]["length"] = length
        station.hears(one)
    assert tx.wis2.notices.unsettled("dwd") == [Unsettled("de-dwd", 2, 1, 95)]
    clock.advance(86_400)
    later = message(7, of=7)
    later["links"][0]["length"] = 10
    station.hears(later)
    assert release(tx, limited) == 0
    clock.advance(2 * 86_400)
    assert tx.wis2.notices.give_up_waiting(clock.now() - timedelta(days=2), "no room") == 1
    (failed,) = tx.wis2.notices.failed("dwd")
    assert (failed.data_id, failed.reason) == ("de-dwd/synop/1", "no room")


def test_own_and_recommended_data_are_refused(station: Station, tx: Transaction) -> None:
    tx.feeds.add(Feed(PUBLISHER.feed))
    ours = TOPIC.replace("de-dwd", PUBLISHER.centre)
    tx.wis2.publishers.add(PUBLISHER)
    taken = station.hears(message(1), topic=ours)
    assert len(taken.notices) == 1, "a publisher that has not begun refuses nothing"
    tx.wis2.publishers.change(replace(PUBLISHER, enabled=True))
    refusal = "it is of us-unidata, for which this hub publishes: it would come round again"
    assert station.refusals(message(2, of=2), topic=ours) == [refusal]
    tx.wis2.publishers.move(PUBLISHER.name, Place("7", 1))
    tx.wis2.publishers.change(PUBLISHER)
    assert station.refusals(message(2, of=2), topic=ours) == [refusal], "switched off, it has published"
    recommended = TOPIC.replace("core", "recommended")
    refusal = "it is recommended data, which this source does not take"
    assert station.refusals(message(2, of=2), topic=recommended) == [refusal]
