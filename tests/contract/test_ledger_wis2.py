"""Sources of WIS2 in the ledger, with their notifications, accounts and holes."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from downburst.domain.bridges import (
    Broker,
    CentreDay,
    Ended,
    Hole,
    Last,
    Notice,
    OriginLogin,
    State,
    Unsettled,
    Wis2Source,
)
from downburst.domain.feeds import Feed
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Changes
from factories import SOME_TIME

BROKERS = Broker("mqtts://one.example"), Broker("wss://two.example/mqtt", "user", "secret", 311)
LOGINS = OriginLogin("data.example", "me", "secret"), OriginLogin("other.example:8443", token="secret")
SOURCE = Wis2Source(
    "dwd",
    "WIS2",
    BROKERS,
    ("cache/a/wis2/de-dwd/#",),
    bytes_per_day=10**12,
    replay_url="https://replay.example",
    logins=LOGINS,
)
LAST = Last("31e9d66a-cd83-4174-9429-b932f1abe1be", ("de-dwd/1", "ab" * 64), SOME_TIME, State.COMING)
NOTICE = Notice("dwd", "de-dwd/1", LAST, "cache/a/wis2/de-dwd/data/core/weather", b'{"id":1}', SOME_TIME, "de-dwd")


@pytest.fixture
def sourced(tx: Transaction) -> Transaction:
    tx.feeds.add(Feed("WIS2"))
    tx.wis2.sources.add(SOURCE)
    return tx


def notice(number: int, state: State = State.COMING) -> Notice:
    data_id = f"de-dwd/{number}"
    last = replace(LAST, identity=(data_id, "ab" * 64), state=state)
    return replace(NOTICE, data_id=data_id, last=last, received_at=SOME_TIME + timedelta(seconds=number))


def test_a_source_comes_back_and_goes_with_all_that_it_brought(sourced: Transaction, clock: FakeClock) -> None:
    kept = replace(SOURCE, created_at=clock.now())
    assert sourced.wis2.sources.all() == [kept] == [sourced.wis2.sources.one("dwd")]
    with pytest.raises(AlreadyThere, match="'dwd' already"):
        sourced.wis2.sources.add(SOURCE)
    with pytest.raises(NotFound, match="no feed 'NONE'"):
        sourced.wis2.sources.change(replace(SOURCE, feed="NONE"))
    changed = sourced.wis2.sources.change(replace(SOURCE, enabled=False))
    assert changed == replace(kept, enabled=False)
    sourced.wis2.notices.take([NOTICE])
    sourced.wis2.sources.remove("dwd")
    with pytest.raises(NotFound, match="bridges list"):
        sourced.wis2.sources.one("dwd")
    assert sourced.wis2.notices.coming("dwd") == []
    changes = sourced.access.audit.page(Changes(kind="bridge"))
    assert [change.action for change in changes] == ["removed", "changed", "added"]
    assert "secret" not in repr(changes)


def test_a_source_remembers_the_topics_that_it_no_longer_takes(sourced: Transaction) -> None:
    sources = sourced.wis2.sources
    sources.change(replace(SOURCE, filters=("a/#", "b/#")))
    assert sources.one("dwd").former_filters == SOURCE.filters
    assert sources.change(replace(sources.one("dwd"), filters=("b/#",))).former_filters == (*SOURCE.filters, "a/#")
    assert sources.change(replace(sources.one("dwd"), filters=("a/#",))).former_filters == (*SOURCE.filters, "b/#")


def test_those_without_room_wait_by_centre_and_are_given_up_after_their_time(
    sourced: Transaction, clock: FakeClock
) -> None:
    notices = sourced.wis2.notices
    waiting = replace(notice(1, State.WAITING), announced_bytes=70)
    other = replace(notice(3, State.WAITING), centre="fr-meteofrance", announced_bytes=5)
    notices.take([waiting, notice(2), other])
    found = [Unsettled("de-dwd", 1, 1, 70), Unsettled("fr-meteofrance", waiting=1, waiting_bytes=5)]
    assert notices.unsettled("dwd") == found
    assert notices.waiting("dwd", "de-dwd") == [waiting]
    assert notices.coming("dwd", centre="fr-meteofrance") == []
    notices.release(waiting)
    assert [one.data_id for one in notices.coming("dwd")] == ["de-dwd/1", "de-dwd/2"]
    assert notices.give_up_waiting(SOME_TIME, "no room") == 0
    assert notices.give_up_waiting(SOME_TIME + timedelta(minutes=1), "no room") == 1
    assert [one.reason for one in notices.failed("dwd")] == ["no room"]


def test_a_removed_feed_takes_its_sources_along(sourced: Transaction) -> None:
    sourced.feeds.remove("WIS2")
    assert sourced.wis2.sources.all() == []


def test_a_notification_is_known_from_the_broker_to_the_log(sourced: Transaction, clock: FakeClock) -> None:
    notices = sourced.wis2.notices
    notices.take([notice(2), notice(1)])
    assert notices.coming("dwd") == [notice(1), notice(2)]
    assert notices.last("dwd", ["de-dwd/1", "de-dwd/9"]) == {"de-dwd/1": notice(1).last}
    ended = [Ended(notice(1), State.HELD, sequence=7), Ended(notice(2), State.FAILED, "status 404")]
    assert notices.settle("dwd", ended) == ended
    assert notices.count("dwd") == {State.HELD: 1, State.FAILED: 1}
    (failed,) = notices.failed("dwd")
    assert (failed.reason, failed.settled_at) == ("status 404", clock.now())
    assert notices.again("dwd") == 1
    assert [one.data_id for one in notices.coming("dwd")] == ["de-dwd/2"]


def test_a_later_notification_takes_the_place_of_one_that_is_still_fetched(sourced: Transaction) -> None:
    notices = sourced.wis2.notices
    notices.take([NOTICE])
    update = replace(NOTICE, last=replace(LAST, id="a23ef8c3-f21f-4230-bdae-5672d0e2a203"))
    notices.take([update])
    assert notices.settle("dwd", [Ended(NOTICE, State.HELD, sequence=1)]) == []
    assert notices.coming("dwd") == [update]


def test_settled_notifications_are_forgotten_and_waiting_ones_never(sourced: Transaction, clock: FakeClock) -> None:
    notices = sourced.wis2.notices
    notices.take([notice(1), notice(2)])
    notices.settle("dwd", [Ended(notice(1), State.HELD)])
    notices.forget_before(clock.now() + timedelta(days=1))
    assert [one.data_id for one in notices.coming("dwd")] == ["de-dwd/2"]
    assert notices.last("dwd", ["de-dwd/1"]) == {}


def test_many_data_ids_are_looked_up_together(sourced: Transaction) -> None:
    sourced.wis2.notices.take(map(notice, range(1_200)))
    found = sourced.wis2.notices.last("dwd", (f"de-dwd/{number}" for number in range(2_000)))
    assert len(found) == 1_200


def test_centres_have_accounts_by_day(sourced: Transaction) -> None:
    days, today = sourced.wis2.days, date(2026, 11, 29)
    one = CentreDay("dwd", "de-dwd", today, products=1, bytes=1_000)
    days.add([one, replace(one, bytes=500, copies=3), replace(one, centre="fr-meteofrance", refused=1)])
    assert days.of("dwd", today) == [
        CentreDay("dwd", "de-dwd", today, products=2, bytes=1_500, copies=3),
        CentreDay("dwd", "fr-meteofrance", today, products=1, bytes=1_000, refused=1),
    ]
    days.forget_before(today + timedelta(days=1))
    assert days.of("dwd", today) == []


def test_holes_are_open_until_they_are_filled(sourced: Transaction, clock: FakeClock) -> None:
    holes = sourced.wis2.holes
    hole = Hole("dwd", "mqtts://one.example", SOME_TIME, SOME_TIME + timedelta(minutes=5), "the session was lost")
    holes.add(hole)
    (kept,) = holes.of("dwd", open_only=True)
    assert replace(kept, number=None) == hole
    assert kept.number is not None
    holes.failed(kept.number, "the service is away")
    assert holes.of("dwd", open_only=True) == [replace(kept, fault="the service is away")]
    holes.filled(kept.number, "https://replay.example")
    assert holes.of("dwd", open_only=True) == []
    assert holes.of("dwd") == [replace(kept, filled_at=clock.now(), filled_by="https://replay.example")]
    holes.add(hole, filled_by="mqtts://two.example")
    assert holes.of("dwd")[0].filled_by == "mqtts://two.example"
