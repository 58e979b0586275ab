"""The seconds of feeds with a deadline in the ledger: they add up, and the newest hour is kept."""

from dataclasses import replace

from downburst.domain.receipts import Batch, Delays, FeedSecond
from downburst.foundation.clock import FakeClock
from downburst.ledger import Transaction

DELAYS = Delays(2, 3.0, 1.0, 2.0, 0, 0.5, {"0": 1, "18": 1})


def second_at(clock: FakeClock, *, ago_s: int = 0, site: str = "a.edu") -> FeedSecond:
    second = int(clock.now().timestamp()) - ago_s
    return FeedSecond("RADAR", site, second, 7, 2, 1, 0, 1, 120, DELAYS)


def load(tx: Transaction, name: str, *seconds: FeedSecond) -> None:
    assert tx.measured.batches.load(Batch(name, seconds=seconds))


def test_parts_of_a_second_add_up(tx: Transaction, clock: FakeClock) -> None:
    one = second_at(clock)
    more = replace(one, stored=3, jitter_us=90, delays=Delays(1, -1.0, -1.0, -1.0, 1, 0.7, {"n0": 1}))
    load(tx, "b1", one)
    load(tx, "b2", more, second_at(clock, site="b.edu"))
    found = tx.measured.feed_seconds.of_feed("RADAR", site="a.edu")
    merged = Delays(3, 2.0, -1.0, 2.0, 1, 0.7, {"0": 1, "18": 1, "n0": 1})
    assert found == [replace(one, stored=10, late_at_hub=4, late_at_site=2, reordered=2, jitter_us=90, delays=merged)]
    load(tx, "b3", replace(one, jitter_us=None, delays=None))
    (found_again,) = tx.measured.feed_seconds.of_feed("RADAR", site="a.edu")
    assert (found_again.jitter_us, found_again.delays) == (90, merged)


def test_the_newest_hour_is_kept(tx: Transaction, clock: FakeClock) -> None:
    load(tx, "b1", second_at(clock, ago_s=3_600), second_at(clock, ago_s=3_601))
    assert len(tx.measured.feed_seconds.of_feed("RADAR")) == 1
    clock.advance(seconds=1)
    load(tx, "b2")
    assert tx.measured.feed_seconds.of_feed("RADAR") == []


def test_the_newest_come_first_page_by_page(tx: Transaction, clock: FakeClock) -> None:
    load(tx, "b1", *(second_at(clock, ago_s=ago, site=site) for ago in range(3) for site in ("a.edu", "b.edu")))
    page = tx.measured.feed_seconds.of_feed("RADAR", limit=3)
    last = page[-1]
    rest = tx.measured.feed_seconds.of_feed("RADAR", before=(last.second, last.site))
    assert [(one.second - last.second, one.site) for one in page] == [(1, "b.edu"), (1, "a.edu"), (0, "b.edu")]
    assert len(rest) == 3
    since = tx.measured.feed_seconds.of_feed("RADAR", since=last.second)
    assert [one.second for one in since] == [last.second + 1] * 2 + [last.second] * 2
    assert tx.measured.feed_seconds.of_feed("OTHER") == []
