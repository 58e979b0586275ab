"""Products of a source in their turns, without a ledger."""

from collections.abc import Iterable
from datetime import UTC, datetime

from downburst.domain.bridges import Last, Notice, State
from downburst_bridges.backlog import (
    AT_ONCE,
    AT_ONCE_OF_CENTRE,
    LEAST_OF_CENTRE,
    MOST_AT_WORK,
    MOST_OF_CENTRE,
    READ_AHEAD,
    Backlog,
)

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def notice(number: int, *, centre: str = "de-dwd", version: str = "a") -> Notice:
    data_id = f"{centre}/{number}"
    last = Last(version, (data_id, version), NOW, State.COMING)
    return Notice("dwd", data_id, last, "a/topic", b"{}", NOW, centre)


def notices(numbers: Iterable[int], *, centre: str = "de-dwd") -> list[Notice]:
    return [notice(number, centre=centre) for number in numbers]


def end(backlog: Backlog, ended: Iterable[Notice]) -> None:
    for one in ended:
        backlog.fetched(one)
        backlog.ended(one, settled=True)


def test_products_come_in_their_order_and_no_read_is_needed() -> None:
    backlog = Backlog()
    backlog.add(notices(range(2 * AT_ONCE_OF_CENTRE)))
    first = backlog.begin()
    assert first == notices(range(AT_ONCE_OF_CENTRE))
    end(backlog, first)
    assert backlog.begin() == notices(range(AT_ONCE_OF_CENTRE, 2 * AT_ONCE_OF_CENTRE))
    assert backlog.to_read() == []


def test_centres_take_turns_within_their_shares() -> None:
    backlog = Backlog()
    for centre in "abcde":
        backlog.add(notices(range(40), centre=centre))
    begun = backlog.begin()
    assert len(begun) == AT_ONCE
    assert "".join(one.centre for one in begun[:6]) == "abcdea"
    backlog.add(notices(range(1), centre="f"))
    end(backlog, begun[:6])
    assert "f" in {one.centre for one in backlog.begin()}


def test_those_whose_end_is_not_recorded_leave_their_place_up_to_a_bound() -> None:
    backlog, begun = Backlog(), list[Notice]()
    backlog.add(notices(range(MOST_OF_CENTRE)))
    while more := backlog.begin():
        begun += more
        for one in more:
            backlog.fetched(one)
    assert len(begun) == MOST_AT_WORK


def test_more_than_is_kept_is_read_later_and_each_once() -> None:
    backlog, ledger, begun = Backlog(), notices(range(MOST_OF_CENTRE + 700)), list[Notice]()
    backlog.add(ledger)
    while more := backlog.begin():
        begun += more
        end(backlog, more)
        for centre in backlog.to_read():
            backlog.found(centre, [one for one in ledger if one not in begun][:READ_AHEAD])
    assert begun == ledger


def test_what_comes_during_a_read_is_not_lost() -> None:
    backlog = Backlog()
    backlog.hide(["de-dwd"])
    assert backlog.to_read() == ["de-dwd"]
    backlog.add([notice(7)])
    backlog.found("de-dwd", [notice(1)])
    assert {one.data_id for one in backlog.begin()} == {"de-dwd/7", "de-dwd/1"}
    assert backlog.to_read() == []


def test_a_read_that_shows_products_at_work_begins_none_of_them_again() -> None:
    backlog = Backlog()
    backlog.add(notices(range(3)))
    begun = backlog.begin()
    backlog.found("de-dwd", notices(range(3)))
    end(backlog, begun)
    assert (backlog.begin(), backlog.to_read()) == ([], [])


def test_a_later_notification_of_one_at_work_has_its_turn_after_it() -> None:
    for found in (False, True):
        backlog, update = Backlog(), notice(1, version="b")
        backlog.add([notice(1)])
        (begun,) = backlog.begin()
        backlog.found("de-dwd", [update]) if found else backlog.add([update])
        assert backlog.begin() == []
        backlog.fetched(begun)
        backlog.ended(begun, settled=found)
        assert backlog.to_read() == ["de-dwd"]
        backlog.found("de-dwd", [update])
        assert backlog.begin() == [update]


def test_an_update_takes_the_place_of_what_waits_and_a_deletion_ends_it() -> None:
    backlog = Backlog()
    backlog.add(notices(range(2)))
    backlog.add([notice(0, version="b")])
    backlog.drop([notice(1, version="b")])
    assert backlog.begin() == [notice(0, version="b")]


def test_one_that_is_tried_again_is_read_again() -> None:
    backlog = Backlog()
    backlog.add(notices(range(1)))
    (begun,) = backlog.begin()
    backlog.fetched(begun)
    backlog.ended(begun, settled=False)
    assert backlog.to_read() == ["de-dwd"]


def test_a_centre_is_not_read_while_enough_of_it_is_here() -> None:
    backlog = Backlog()
    backlog.add(notices(range(LEAST_OF_CENTRE)))
    backlog.hide(["de-dwd"])
    assert backlog.to_read() == []
