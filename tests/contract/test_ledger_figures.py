"""Sums of the ledger: counters, batches of sketches, packed history, losses."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from downburst.domain.faults import Fault
from downburst.domain.feeds import TrafficMinute
from downburst.domain.latency import SketchRow
from downburst.domain.plans import LegCounters, Transport
from downburst.domain.receipts import Batch, LogHead, ProductException
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Transaction
from downburst.ledger.repositories.exceptions import Lost
from downburst.ledger.repositories.journal import FAULTS_KEPT
from downburst.ledger.repositories.log_heads import EPOCHS_REMEMBERED
from downburst.ledger.repositories.receipts import Received
from factories import EPOCH, SOME_TIME, settled, sketch_row


def test_counts_of_a_leg_add_up_per_plan_version(tx: Transaction) -> None:
    sent = LegCounters("NGRID", 1, 4, Transport.UNICAST, 2, 1, 10, 20, 3, 1, 10)
    tx.planning.legs.count([sent])
    tx.planning.legs.count([replace(sent, sites=3), replace(sent, version=2)])
    twice = LegCounters("NGRID", 1, 4, Transport.UNICAST, 3, 2, 20, 40, 6, 2, 20)
    assert tx.planning.legs.counters("NGRID") == [twice, replace(sent, version=2)]
    assert tx.planning.legs.totals().egress_bytes == 60


def test_heads_only_rise_and_each_epoch_has_its_own(tx: Transaction, clock: FakeClock) -> None:
    tx.measured.log_heads.rise([LogHead("NGRID", "5", 9), LogHead("NGRID", "5", 7), LogHead("TEXT", "5", 0)])
    assert tx.measured.log_heads.all() == [LogHead("NGRID", "5", 9)]
    clock.advance(seconds=1)
    tx.measured.log_heads.rise([LogHead("NGRID", "18446744073709551615", 2), LogHead("TEXT", "5", 1 << 62)])
    newest = LogHead("NGRID", "18446744073709551615", 2)
    assert tx.measured.log_heads.all() == [newest, LogHead("NGRID", "5", 9), LogHead("TEXT", "5", 1 << 62)]


def test_heads_of_long_lost_logs_are_forgotten(tx: Transaction, clock: FakeClock) -> None:
    for epoch in range(EPOCHS_REMEMBERED + 2):
        clock.advance(seconds=1)
        tx.measured.log_heads.rise([LogHead("NGRID", str(epoch), 1)])
    remembered = [int(head.epoch) for head in tx.measured.log_heads.all()]
    assert remembered == list(range(EPOCHS_REMEMBERED + 1, 1, -1))


def test_a_batch_is_loaded_once(tx: Transaction) -> None:
    rejected = ProductException("NGRID", EPOCH, 9, "unl.edu", "rejected", tx.clock.now())
    batch = Batch("b1", (sketch_row([1, 2]),), (rejected,), (settled(9, stored=2),))
    assert tx.measured.batches.load(batch)
    assert not tx.measured.batches.load(batch)
    assert tx.measured.latency.rows()[0].count == 2
    assert tx.measured.settled.all()[0].stored == 2
    assert tx.measured.exceptions.recent() == [rejected]


def test_a_second_batch_adds_to_the_first(tx: Transaction) -> None:
    tx.measured.batches.load(Batch("b1", (sketch_row([1, 2]),), (), (settled(9, stored=2),)))
    tx.measured.batches.load(Batch("b2", (sketch_row([-1, 400]),), (), (settled(7, stored=1),)))
    assert tx.measured.latency.rows() == [sketch_row([1, 2, -1, 400])]
    report = tx.measured.settled.all()[0]
    assert (report.settled_to, report.stored, report.stored_bytes) == (9, 3, 3000)
    assert report.last_receipt_at == tx.clock.now()


def test_what_a_site_has_is_told_for_all_its_feeds_together(tx: Transaction) -> None:
    assert tx.measured.settled.by_site() == {}
    tx.measured.settled.advance(settled(9, stored=2), settled(4, feed="TEXT", stored=3), at=tx.clock.now())
    tx.measured.settled.advance(settled(5, site="b"), at=tx.clock.now())
    assert tx.measured.settled.by_site() == {
        "unl.edu": Received(5, tx.clock.now()),
        "b": Received(0, None),
    }


def test_a_report_without_products_is_no_receipt(tx: Transaction) -> None:
    tx.measured.settled.advance(settled(5), at=tx.clock.now())
    assert tx.measured.settled.all()[0].last_receipt_at is None


def test_latency_is_narrowed_to_what_is_asked(tx: Transaction) -> None:
    tx.measured.latency.add(sketch_row([1], minute=1), sketch_row([2], minute=2), sketch_row([3], minute=2, site="b"))
    assert {row.sum_ms for row in tx.measured.latency.rows(since_minute=2)} == {2, 3}
    assert {row.sum_ms for row in tx.measured.latency.rows(site="b")} == {3}
    assert tx.measured.latency.rows(transport=Transport.MULTICAST) == []
    assert tx.measured.latency.forget_before(2) == 1
    assert len(tx.measured.latency.rows()) == 2


def test_only_the_newest_faults_are_kept(tx: Transaction) -> None:
    for number in range(FAULTS_KEPT + 5):
        tx.measured.faults.add(Fault(tx.clock.now(), f"fault {number}"))
    kept = tx.measured.faults.recent(limit=FAULTS_KEPT * 2)
    assert len(kept) == FAULTS_KEPT
    assert kept[-1].sentence == f"fault {FAULTS_KEPT + 4}"
    assert tx.measured.faults.recent(since=tx.clock.now() + timedelta(seconds=1)) == []


def test_arrivals_add_up_by_the_minute(tx: Transaction) -> None:
    tx.measured.traffic.add([TrafficMinute("NGRID", 5, 1, 100, 100)])
    tx.measured.traffic.add([TrafficMinute("NGRID", 5, 2, 50, 30), TrafficMinute("NGRID", 6, 1, 1, 1)])
    assert tx.measured.traffic.minutes(since_minute=5)[0] == TrafficMinute("NGRID", 5, 3, 150, 100)
    assert tx.measured.traffic.totals()["NGRID"] == TrafficMinute("NGRID", 6, 4, 151, 100)


def _filled(tx: Transaction, minutes: range) -> None:
    for minute in minutes:
        tx.measured.latency.add(
            sketch_row([minute, 5.5], minute=minute), sketch_row([1, -2], minute=minute, site="b", feed="HDS")
        )


def _roll_up(tx: Transaction, before_minute: int) -> int:
    packed = 0
    while more := tx.measured.latency.roll_up(before_minute=before_minute):
        packed += more
    return packed


def _sums(rows: list[SketchRow]) -> dict[tuple[str, int], tuple[int, float]]:
    return {(row.feed, row.minute): (row.count, round(row.sum_ms, 6)) for row in rows}


def test_rolling_up_changes_no_figure_by_the_minute(tx: Transaction) -> None:
    _filled(tx, range(50, 200))
    before = tx.measured.latency.rows()
    assert _roll_up(tx, 195) == 2 * 140
    assert tx.measured.latency.packed_bytes() > 0
    after = tx.measured.latency.rows()
    assert _sums(after) == _sums(before)
    assert sorted(after, key=lambda row: (row.minute, row.feed)) == sorted(
        before, key=lambda row: (row.minute, row.feed)
    )
    assert _roll_up(tx, 195) == 0


def test_every_range_of_minutes_is_answered_from_both_places(tx: Transaction) -> None:
    _filled(tx, range(50, 200))
    whole = _sums(tx.measured.latency.rows())
    _roll_up(tx, 190)
    for begin, end in ((0, 60), (59, 61), (61, 119), (100, 185), (179, 181), (190, 300), (77, 77)):
        expected = {key: value for key, value in whole.items() if begin <= key[1] < end}
        assert _sums(tx.measured.latency.rows(since_minute=begin, until_minute=end)) == expected, (begin, end)
    assert {row.feed for row in tx.measured.latency.rows(site="b")} == {"HDS"}


def test_a_late_receipt_joins_its_packed_hour_and_day(tx: Transaction) -> None:
    _filled(tx, range(60, 70))
    _roll_up(tx, 600)
    tx.measured.latency.add(sketch_row([40.0], minute=65), sketch_row([9.0], minute=90))
    _roll_up(tx, 600)
    ngrid = tx.measured.latency.rows(feed="NGRID")
    assert {row.minute: row.count for row in ngrid} == {minute: 2 + (minute == 65) for minute in range(60, 70)} | {
        90: 1
    }
    ((day),) = tx.measured.latency.spans(feed="NGRID", until_minute=2 * 1440)
    assert (day.minute, day.count) == (0, 22)


def test_long_ranges_come_from_days_and_hold_the_same_values(tx: Transaction) -> None:
    day = 24 * 60
    minutes = [minute for start in range(0, 5 * day, 7 * 60) for minute in (start, start + 61)]
    for minute in minutes:
        tx.measured.latency.add(sketch_row([float(minute % 97), 3.0], minute=minute))
    _roll_up(tx, 5 * day - 200)
    for begin, end in ((0, 5 * day), (61, 3 * day + 5), (day, 2 * day), (day + 1, 2 * day - 1), (4 * day, 6 * day)):
        spans = tx.measured.latency.spans(since_minute=begin, until_minute=end)
        rows = tx.measured.latency.rows(since_minute=begin, until_minute=end)
        assert sum(row.count for row in spans) == sum(row.count for row in rows), (begin, end)
        assert sum(row.sum_ms for row in spans) == pytest.approx(sum(row.sum_ms for row in rows))
    assert len(tx.measured.latency.spans(until_minute=5 * day)) < len(minutes) / 2


def test_packed_history_is_forgotten_by_the_hour_and_by_the_longest_span(tx: Transaction) -> None:
    _filled(tx, range(180))
    _roll_up(tx, 180)
    assert tx.measured.latency.forget_before(121) == 2 * 2 * 2, (
        "of two feeds two hours, each by the minute and merged"
    )
    assert {row.minute for row in tx.measured.latency.rows()} == set(range(120, 180))
    tx.measured.latency.forget_before(6 * 24 * 60)
    assert (tx.measured.latency.rows(), tx.measured.latency.spans()) == ([], [])


def _lost(sequence: int, minute: int, **given: Any) -> ProductException:
    usual = ProductException("NGRID", EPOCH, sequence, "unl.edu", "expired", SOME_TIME + timedelta(minutes=minute))
    return replace(usual, **given)


def test_what_was_lost_is_listed_page_by_page_without_gap_or_double(tx: Transaction) -> None:
    lost = [_lost(number, number // 3, site=("a", "b")[number % 2]) for number in range(25)]
    tx.measured.exceptions.add(*lost)
    for limit in (1, 4, 25, 100):
        found, after = [], None
        for _ in lost:
            page = tx.measured.exceptions.page(Lost(), after=after, limit=limit)
            found += page.items
            after = page.next
            if after is None:
                break
        assert len(found) == len(lost)
        assert set(found) == set(lost)
        assert [one.at for one in found] == sorted((one.at for one in lost), reverse=True)


def test_what_was_lost_is_narrowed_by_site_feed_time_and_outcome(tx: Transaction) -> None:
    tx.measured.exceptions.add(
        _lost(1, 1), _lost(2, 2, site="b"), _lost(3, 3, feed="HDS"), _lost(4, 4, outcome="rejected"), _lost(5, 5)
    )
    begin, end = SOME_TIME + timedelta(minutes=2), SOME_TIME + timedelta(minutes=5)
    for lost, expected in (
        (Lost(), [5, 4, 3, 2, 1]),
        (Lost(site="b"), [2]),
        (Lost(feed="HDS"), [3]),
        (Lost(outcomes=("rejected",)), [4]),
        (Lost(begin=begin, end=end), [4, 3, 2]),
    ):
        assert [one.sequence for one in tx.measured.exceptions.page(lost).items] == expected, lost
    assert [one.sequence for one in tx.measured.exceptions.of_product("NGRID", EPOCH, 4)] == [4]
    with pytest.raises(BadInput, match="not the end of a page"):
        tx.measured.exceptions.page(Lost(), after="nonsense")
