"""Holes at brokers: lost sessions, full queues, and brokers that stood in."""

from datetime import UTC, datetime, timedelta

from downburst.domain.bridges import Standing
from downburst_bridges.holes import Found, HoleWatch

ONE, TWO = "mqtts://one.example", "mqtts://two.example"
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


class Brokers:
    def __init__(self, known_to: datetime | None = None) -> None:
        self.watch = HoleWatch("dwd", known_to)

    def connects(self, url: str, minutes: float, *, kept: bool) -> Found | None:
        return self.watch.changed(url, Standing(at(minutes), session_present=kept, fault=""), at(minutes))

    def leaves(self, url: str, minutes: float) -> None:
        assert self.watch.changed(url, Standing(fault="the connection ended"), at(minutes)) is None

    def brings(self, url: str, count: int, *, published: float, minutes: float) -> list[Found]:
        heard = [self.watch.heard(url, at(published), at(minutes)) for _ in range(count)]
        return [found for found in heard if found is not None]


def test_the_first_connection_of_a_new_source_has_no_hole() -> None:
    assert Brokers().connects(ONE, 0, kept=False) is None


def test_a_session_that_was_not_kept_is_a_hole_since_the_last_connection() -> None:
    brokers = Brokers()
    brokers.connects(ONE, 0, kept=False)
    brokers.leaves(ONE, 10)
    brokers.leaves(ONE, 12)
    found = brokers.connects(ONE, 15, kept=False)
    assert found is not None
    assert (found.hole.from_at, found.hole.to_at, found.filled_by) == (at(10), at(15), None)
    assert "did not keep" in found.hole.reason


def test_a_hub_that_was_away_knows_how_far_it_had_come() -> None:
    found = Brokers(known_to=at(-60)).connects(ONE, 0, kept=False)
    assert found is not None
    assert (found.hole.from_at, found.hole.to_at) == (at(-60), at(0))
    assert Brokers(known_to=at(-60)).connects(ONE, 0, kept=True) is None


def test_a_broker_that_was_connected_throughout_has_brought_all() -> None:
    brokers = Brokers()
    for url in (ONE, TWO):
        brokers.connects(url, 0, kept=False)
    brokers.leaves(ONE, 10)
    found = brokers.connects(ONE, 15, kept=False)
    assert found is not None
    assert found.filled_by == TWO
    brokers.leaves(ONE, 20)
    brokers.leaves(TWO, 22)
    brokers.connects(TWO, 23, kept=True)
    found = brokers.connects(ONE, 25, kept=False)
    assert found is not None
    assert found.filled_by is None, "the other was away in between"


def test_a_long_queue_after_an_absence_ends_in_a_hole() -> None:
    brokers = Brokers()
    brokers.connects(ONE, 0, kept=False)
    brokers.leaves(ONE, 10)
    assert brokers.connects(ONE, 60, kept=True) is None
    assert brokers.brings(ONE, 1_999, published=20, minutes=60) == []
    assert brokers.brings(ONE, 1, published=30, minutes=60) == []
    (found,) = brokers.brings(ONE, 5, published=60.1, minutes=60.2)
    assert (found.hole.from_at, found.hole.to_at) == (at(30), at(60))
    assert "2000 messages waited" in found.hole.reason


def test_a_short_queue_is_whole_and_live_messages_are_none() -> None:
    brokers = Brokers()
    brokers.connects(ONE, 0, kept=False)
    assert brokers.brings(ONE, 5_000, published=1, minutes=1) == []
    brokers.leaves(ONE, 10)
    brokers.connects(ONE, 20, kept=True)
    assert brokers.brings(ONE, 999, published=15, minutes=20) == []
    assert brokers.brings(ONE, 5, published=21, minutes=21) == []


def test_a_publisher_whose_clock_is_behind_does_not_make_a_queue_for_ever() -> None:
    brokers = Brokers()
    brokers.connects(ONE, 0, kept=False)
    brokers.leaves(ONE, 10)
    brokers.connects(ONE, 20, kept=True)
    brokers.brings(ONE, 1_500, published=15, minutes=20)
    (found,) = brokers.brings(ONE, 3, published=15, minutes=31)
    assert found.hole.from_at == at(15)
