"""The ledger on SQLite, and on PostgreSQL where DOWNBURST_TEST_POSTGRES names one."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect, text

from downburst.clock import FakeClock
from downburst.errors import AlreadyThere, BadInput, NotFound, NotWritable, Refused, UnknownFeed
from downburst.ledger import Book, Ledger
from downburst.ledger.dump import Dump, fill, look
from downburst.ledger.exceptions import Lost
from downburst.ledger.journal import FAULTS_KEPT
from downburst.model import (
    Batch,
    Candidate,
    CircuitAttachment,
    DuplicateRule,
    Fault,
    Feed,
    FeedClass,
    IdFilter,
    LegCounters,
    Place,
    ProductException,
    Resend,
    ResendState,
    Site,
    SketchRow,
    Subscription,
    TrafficMinute,
    Transport,
    Upstream,
)
from downburst.tables import metadata
from factories import EPOCH, SOME_TIME, multicast, plan, settled, sketch_row, unicast

POSTGRES = os.environ.get("DOWNBURST_TEST_POSTGRES")


@pytest.fixture(params=["sqlite", *(["postgres"] if POSTGRES else [])])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Ledger]:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    if request.param == "postgres" and POSTGRES:
        url = POSTGRES
        _wipe(url)
    opened = Ledger.open(url, clock)
    yield opened
    opened.close()


@pytest.fixture
def book(ledger: Ledger) -> Iterator[Book]:
    with ledger.transaction() as opened:
        yield opened


def test_the_migrations_make_the_tables_that_the_code_means(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'migrated.sqlite'}"
    Ledger.open(url).close()
    meant = create_engine("sqlite://")
    metadata.create_all(meant)
    made = create_engine(url)
    for table in metadata.tables:
        columns = {column["name"]: str(column["type"]) for column in inspect(made).get_columns(table)}
        assert columns == {column["name"]: str(column["type"]) for column in inspect(meant).get_columns(table)}, table
        assert inspect(made).get_pk_constraint(table) == inspect(meant).get_pk_constraint(table)
        assert _foreign_keys(made, table) == _foreign_keys(meant, table)
    made.dispose()
    meant.dispose()


def test_opening_again_keeps_what_is_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'again.sqlite'}"
    for expected in (0, 1):
        opened = Ledger.open(url)
        with opened.transaction() as book:
            assert len(book.feeds.all()) == expected
            if not expected:
                book.feeds.add(Feed("NGRID"))
        opened.close()


def test_a_directory_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="check the directory"):
        Ledger.open(f"sqlite:///{tmp_path / 'nowhere' / 'ledger.sqlite'}")


async def test_work_that_raises_leaves_nothing(ledger: Ledger) -> None:
    def half(book: Book) -> None:
        book.feeds.add(Feed("NGRID"))
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        await ledger.write(half)
    assert await ledger.read(lambda book: book.feeds.all()) == []


def test_a_feed_comes_back_whole(book: Book) -> None:
    made = book.feeds.add(
        Feed("IDS|DDPLUS", FeedClass.WARNING, retention_hours=1.5, duplicate_rule=DuplicateRule.NONE, objective_ms=7)
    )
    assert book.feeds.one("IDS|DDPLUS") == made
    assert made.unicast_leg is not None
    assert made.created_at == book.clock.now()


def test_feeds_have_legs_of_their_own_for_good(book: Book) -> None:
    first = book.feeds.add(Feed("A")).unicast_leg
    book.feeds.remove("A")
    second = book.feeds.add(Feed("A")).unicast_leg
    assert first is not None
    assert second is not None
    assert second > first
    changed = book.feeds.change(Feed("A", FeedClass.BULK))
    assert changed.unicast_leg == second


def test_a_feed_is_made_once(book: Book) -> None:
    book.feeds.add(Feed("NGRID"))
    with pytest.raises(AlreadyThere, match="NGRID"):
        book.feeds.add(Feed("NGRID"))


def test_an_unknown_feed_names_the_near_ones(book: Book) -> None:
    for name in ("NGRID", "NEXRAD2", "NEXRAD3"):
        book.feeds.add(Feed(name))
    with pytest.raises(UnknownFeed) as refused:
        book.feeds.one("ngird")
    assert refused.value.extra["near"] == ["NGRID"]
    assert "did you mean NGRID?" in refused.value.sentence


def test_a_site_comes_back_whole(book: Book) -> None:
    site = Site(
        "unl.edu",
        organisation="Nebraska",
        place=Place("Lincoln", 40.8, -96.7),
        circuit_attachment=CircuitAttachment("ae1", 100, 199),
        ceiling_mbps_by_hour=tuple(float(hour) for hour in range(24)),
        allow=("NGRID",),
        multicast=False,
    )
    assert book.sites.add(site) == replace(site, created_at=book.clock.now())


def test_what_a_site_had_goes_with_it(book: Book) -> None:
    _site_with_token(book, "secret")
    book.tokens.consume("secret", "credential", peer="192.0.2.1:5")
    book.feeds.add(Feed("NGRID"))
    book.subscriptions.add(Subscription(0, "unl.edu", "NGRID"))
    book.sites.remove("unl.edu")
    assert book.subscriptions.all() == []
    assert book.credentials.usable() == []
    with pytest.raises(Refused, match="not known"):
        book.tokens.consume("secret", "credential", peer="192.0.2.1:5")


def test_a_token_enrols_one_receiver_once(book: Book) -> None:
    _site_with_token(book, "secret")
    for _ in range(2):
        assert book.tokens.consume("secret", "credential", peer="192.0.2.1:5").name == "unl.edu"
    assert [credential.sha256 for credential in book.credentials.of("unl.edu")] == ["credential"]
    with pytest.raises(Refused, match=r"another receiver at 192\.0\.2\.1:5; ask the operator"):
        book.tokens.consume("secret", "other", peer="192.0.2.9:5")
    assert len(book.credentials.of("unl.edu")) == 1


def test_a_credential_belongs_to_one_site(book: Book) -> None:
    _site_with_token(book, "secret")
    book.tokens.add("unl.edu", "second", lifetime=timedelta(hours=1))
    book.tokens.consume("secret", "credential", peer="p")
    with pytest.raises(Refused, match="enrolled already"):
        book.tokens.consume("second", "credential", peer="p")


def test_a_token_expires(ledger: Ledger, clock: FakeClock) -> None:
    with ledger.transaction() as book:
        _site_with_token(book, "secret")
    clock.advance(3600)
    with ledger.transaction() as book, pytest.raises(Refused, match=r"expired at 2026-01-01 01:00 UTC"):
        book.tokens.consume("secret", "credential", peer="p")


def test_a_revoked_credential_is_not_usable(book: Book) -> None:
    _site_with_token(book, "secret")
    book.tokens.consume("secret", "credential", peer="p")
    assert book.credentials.revoke("unl.edu", "other") == 0
    assert len(book.credentials.usable()) == 1
    assert book.credentials.revoke("unl.edu") == 1
    assert book.credentials.usable() == []
    assert not book.credentials.of("unl.edu")[0].usable_at(book.clock.now())


def test_a_subscription_that_is_gone_is_said(book: Book) -> None:
    with pytest.raises(NotFound, match="no subscription 7"):
        book.subscriptions.remove(7)


def test_a_resend_waits_until_it_ends_once(book: Book) -> None:
    wanted = _resend(book)
    kept = book.resends.add(wanted)
    assert kept == replace(wanted, id=kept.id, requested_at=book.clock.now())
    assert book.resends.waiting() == [kept]
    assert book.resends.finish(kept.id, products=3, size_bytes=99, expired=1)
    assert not book.resends.finish(kept.id, products=4, size_bytes=100, expired=1)
    ended = book.resends.one(kept.id)
    assert (ended.state, ended.products, ended.bytes, ended.expired) == (ResendState.DONE, 3, 99, 1)
    assert ended.ended_at == book.clock.now()
    assert book.resends.waiting() == []
    assert book.resends.cancel(kept.id).state is ResendState.DONE


def test_resends_are_found_by_site_and_feed_and_never_numbered_twice(book: Book) -> None:
    wanted = _resend(book)
    first, second = book.resends.add(wanted), book.resends.add(wanted)
    assert book.resends.newest(site="unl.edu", feed="NGRID") == [second, first]
    assert book.resends.newest(limit=1) == [second]
    assert book.resends.newest(site="other") == []
    assert book.resends.cancel(first.id).state is ResendState.CANCELLED
    assert book.resends.waiting() == [second]
    book.sites.remove("unl.edu")
    assert book.resends.newest() == []
    assert book.resends.add(_resend(book)).id > second.id
    with pytest.raises(NotFound, match="no resend 77"):
        book.resends.cancel(77)


def test_a_subscription_keeps_order_age_and_start(book: Book) -> None:
    _resend(book)
    wish = Subscription(0, "unl.edu", "NGRID", in_order=True, hold_s=0.5, max_age_s=60.0, start_at=book.clock.now())
    kept = book.subscriptions.add(wish)
    assert kept == replace(wish, id=kept.id, created_at=book.clock.now())


def test_upstreams_are_kept_by_name(book: Book) -> None:
    wanted = Upstream("unidata", "idd.example.edu:7370", "dbt1.ab.secret", ("NGRID", "IDS|DDPLUS"))
    kept = book.upstreams.add(wanted)
    assert kept == replace(wanted, created_at=book.clock.now())
    assert "secret" not in repr(kept)
    assert book.upstreams.all() == [kept]
    with pytest.raises(AlreadyThere, match="unidata"):
        book.upstreams.add(wanted)
    book.upstreams.remove("unidata")
    with pytest.raises(NotFound, match="upstreams list"):
        book.upstreams.remove("unidata")


def test_plans_get_rising_versions_and_come_back_whole(book: Book) -> None:
    leg = book.legs.allocate("NGRID")
    first = replace(
        plan("NGRID", unicast(leg, "a"), made_at=book.clock.now()),
        candidates=(Candidate(Transport.MULTICAST, feasible=False, reason="one site", egress_bps=1.5),),
        figures={"mean_bps": 12.3e6, "because": "start"},
    )
    assert book.plans.append(first) == replace(first, version=1)
    assert book.plans.append(plan("NGRID", multicast(leg + 1, "a", "b"))).version == 2
    assert book.plans.append(plan("OTHER")).version == 1
    assert book.plans.history("NGRID")[1] == replace(first, version=1)
    assert [(current.feed, current.version) for current in book.plans.all_current()] == [("NGRID", 2), ("OTHER", 1)]
    assert book.plans.current("NONE") is None


def test_figures_of_a_plan_can_be_added_later(book: Book) -> None:
    kept = book.plans.append(plan("NGRID", unicast(1, "a")))
    book.plans.annotate(replace(kept, figures={"predicted_over_measured": 1.1}, reason="not written"))
    assert book.plans.current("NGRID") == replace(kept, figures={"predicted_over_measured": 1.1})


def test_a_pin_replaces_the_one_before(book: Book) -> None:
    book.feeds.add(Feed("NGRID"))
    book.pins.set("NGRID", Transport.UNICAST, by="anna")
    book.pins.set("NGRID", Transport.MULTICAST, by="ben")
    pin = book.pins.find("NGRID")
    assert pin is not None
    assert (pin.transport, pin.by) == (Transport.MULTICAST, "ben")
    assert book.pins.remove("NGRID")
    assert not book.pins.remove("NGRID")


def test_counts_of_a_leg_add_up_per_plan_version(book: Book) -> None:
    sent = LegCounters("NGRID", 1, 4, Transport.UNICAST, 2, 1, 10, 20, 3, 1, 10)
    book.legs.count([sent])
    book.legs.count([replace(sent, sites=3), replace(sent, version=2)])
    twice = LegCounters("NGRID", 1, 4, Transport.UNICAST, 3, 2, 20, 40, 6, 2, 20)
    assert book.legs.counters("NGRID") == [twice, replace(sent, version=2)]
    assert book.legs.totals().egress_bytes == 60


def test_a_batch_is_loaded_once(book: Book) -> None:
    rejected = ProductException("NGRID", EPOCH, 9, "unl.edu", "rejected", book.clock.now())
    batch = Batch("b1", (sketch_row([1, 2]),), (rejected,), (settled(9, stored=2),))
    assert book.batches.load(batch)
    assert not book.batches.load(batch)
    assert book.latency.rows()[0].count == 2
    assert book.settled.all()[0].stored == 2
    assert book.exceptions.recent() == [rejected]


def test_a_second_batch_adds_to_the_first(book: Book) -> None:
    book.batches.load(Batch("b1", (sketch_row([1, 2]),), (), (settled(9, stored=2),)))
    book.batches.load(Batch("b2", (sketch_row([-1, 400]),), (), (settled(7, stored=1),)))
    assert book.latency.rows() == [sketch_row([1, 2, -1, 400])]
    report = book.settled.all()[0]
    assert (report.settled_to, report.stored, report.stored_bytes) == (9, 3, 3000)
    assert report.last_receipt_at == book.clock.now()


def test_a_report_without_products_is_no_receipt(book: Book) -> None:
    book.settled.advance(settled(5), at=book.clock.now())
    assert book.settled.all()[0].last_receipt_at is None


def test_latency_is_narrowed_to_what_is_asked(book: Book) -> None:
    book.latency.add(sketch_row([1], minute=1), sketch_row([2], minute=2), sketch_row([3], minute=2, site="b"))
    assert {row.sum_ms for row in book.latency.rows(since_minute=2)} == {2, 3}
    assert {row.sum_ms for row in book.latency.rows(site="b")} == {3}
    assert book.latency.rows(transport=Transport.MULTICAST) == []
    assert book.latency.forget_before(2) == 1
    assert len(book.latency.rows()) == 2


def test_only_the_newest_faults_are_kept(book: Book) -> None:
    for number in range(FAULTS_KEPT + 5):
        book.faults.add(Fault(book.clock.now(), f"fault {number}"))
    kept = book.faults.recent(limit=FAULTS_KEPT * 2)
    assert len(kept) == FAULTS_KEPT
    assert kept[-1].sentence == f"fault {FAULTS_KEPT + 4}"
    assert book.faults.recent(since=book.clock.now() + timedelta(seconds=1)) == []


def test_arrivals_add_up_by_the_minute(book: Book) -> None:
    book.traffic.add([TrafficMinute("NGRID", 5, 1, 100, 100)])
    book.traffic.add([TrafficMinute("NGRID", 5, 2, 50, 30), TrafficMinute("NGRID", 6, 1, 1, 1)])
    assert book.traffic.minutes(since_minute=5)[0] == TrafficMinute("NGRID", 5, 3, 150, 100)
    assert book.traffic.totals()["NGRID"] == TrafficMinute("NGRID", 6, 4, 151, 100)


def _foreign_keys(engine: Engine, table: str) -> list[Any]:
    return sorted(inspect(engine).get_foreign_keys(table), key=lambda key: str(key["name"]))


def _site_with_token(book: Book, secret: str) -> None:
    book.sites.add(Site("unl.edu"))
    book.tokens.add("unl.edu", secret, lifetime=timedelta(hours=1))


def _wipe(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        metadata.drop_all(connection)
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
    engine.dispose()


def test_a_credential_ends_when_its_token_said_so(book: Book, clock: FakeClock) -> None:
    book.sites.add(Site("unl.edu"))
    book.tokens.add("unl.edu", "t", lifetime=timedelta(hours=1), credential_lifetime=timedelta(days=2))
    book.tokens.consume("t", "c", peer="192.0.2.1:5")
    (credential,) = book.credentials.of("unl.edu")
    assert credential.expires_at == clock.now() + timedelta(days=2)
    assert credential.usable_at(clock.now() + timedelta(days=1))
    assert not credential.usable_at(clock.now() + timedelta(days=2))


def _resend(book: Book) -> Resend:
    """One to a site and of a feed that exist then."""
    if book.sites.find("unl.edu") is None:
        book.sites.add(Site("unl.edu"))
    if not book.feeds.all():
        book.feeds.add(Feed("NGRID"))
    now = book.clock.now()
    return Resend(
        0, "unl.edu", "NGRID", now - timedelta(hours=2), now, wanted=IdFilter("^A", "B$"), had=(IdFilter("^AA"),)
    )


def test_every_row_goes_into_another_database_and_back(ledger: Ledger, tmp_path: Path, clock: FakeClock) -> None:
    with ledger.transaction() as book:
        _site_with_token(book, "secret")
        book.resends.add(_resend(book))
        book.resends.cancel(book.resends.add(_resend(book)).id)
        book.latency.add(sketch_row([1.0, 2.0]))
        last = book.resends.newest()[0]
    url = ledger._engine.url.render_as_string(hide_password=False)
    between = f"sqlite:///{tmp_path / 'between.sqlite'}"
    _copy(url, between)
    if POSTGRES and url.startswith("postgres"):
        _wipe(url)
    else:
        url = f"sqlite:///{tmp_path / 'again.sqlite'}"
    _copy(between, url)
    again = Ledger.open(url, clock)
    with again.transaction() as book:
        assert book.resends.newest()[0] == last
        assert [site.name for site in book.sites.all()] == ["unl.edu"]
        assert book.resends.add(_resend(book)).id == last.id + 1
    again.close()


def _copy(source: str, target: str) -> None:
    engine, connection = look(source)
    dump = Dump(connection)
    tables = [(table, list(dump.rows(table))) for table in dump.tables]
    fill(target, dump.revision, tables, dump.counters())
    connection.close()
    engine.dispose()


def _filled(book: Book, minutes: range) -> None:
    for minute in minutes:
        book.latency.add(
            sketch_row([minute, 5.5], minute=minute), sketch_row([1, -2], minute=minute, site="b", feed="HDS")
        )


def _roll_up(book: Book, before_minute: int) -> int:
    packed = 0
    while more := book.latency.roll_up(before_minute=before_minute):
        packed += more
    return packed


def _sums(rows: list[SketchRow]) -> dict[tuple[str, int], tuple[int, float]]:
    return {(row.feed, row.minute): (row.count, round(row.sum_ms, 6)) for row in rows}


def test_rolling_up_changes_no_figure_by_the_minute(book: Book) -> None:
    _filled(book, range(50, 200))
    before = book.latency.rows()
    assert _roll_up(book, 190) == 2 * 130
    assert len(book.latency.young_rows()) == 2 * 20
    assert book.latency.packed_bytes() > 0
    after = book.latency.rows()
    assert _sums(after) == _sums(before)
    assert sorted(after, key=lambda row: (row.minute, row.feed)) == sorted(
        before, key=lambda row: (row.minute, row.feed)
    )
    assert _roll_up(book, 190) == 0


def test_every_range_of_minutes_is_answered_from_both_places(book: Book) -> None:
    _filled(book, range(50, 200))
    whole = _sums(book.latency.rows())
    _roll_up(book, 190)
    for begin, end in ((0, 60), (59, 61), (61, 119), (100, 185), (179, 181), (190, 300), (77, 77)):
        expected = {key: value for key, value in whole.items() if begin <= key[1] < end}
        assert _sums(book.latency.rows(since_minute=begin, until_minute=end)) == expected, (begin, end)
    assert {row.feed for row in book.latency.rows(site="b")} == {"HDS"}


def test_a_late_receipt_joins_its_packed_hour_and_day(book: Book) -> None:
    _filled(book, range(60, 70))
    _roll_up(book, 600)
    book.latency.add(sketch_row([40.0], minute=65), sketch_row([9.0], minute=90))
    _roll_up(book, 600)
    assert book.latency.young_rows() == []
    ngrid = book.latency.rows(feed="NGRID")
    assert {row.minute: row.count for row in ngrid} == {minute: 2 + (minute == 65) for minute in range(60, 70)} | {
        90: 1
    }
    ((day),) = book.latency.spans(feed="NGRID", until_minute=2 * 1440)
    assert (day.minute, day.count) == (0, 22)


def test_long_ranges_come_from_days_and_hold_the_same_values(book: Book) -> None:
    day = 24 * 60
    minutes = [minute for start in range(0, 5 * day, 7 * 60) for minute in (start, start + 61)]
    for minute in minutes:
        book.latency.add(sketch_row([float(minute % 97), 3.0], minute=minute))
    _roll_up(book, 5 * day - 200)
    for begin, end in ((0, 5 * day), (61, 3 * day + 5), (day, 2 * day), (day + 1, 2 * day - 1), (4 * day, 6 * day)):
        spans = book.latency.spans(since_minute=begin, until_minute=end)
        rows = book.latency.rows(since_minute=begin, until_minute=end)
        assert sum(row.count for row in spans) == sum(row.count for row in rows), (begin, end)
        assert sum(row.sum_ms for row in spans) == pytest.approx(sum(row.sum_ms for row in rows))
    assert len(book.latency.spans(until_minute=5 * day)) < len(minutes) / 2


def test_packed_history_is_forgotten_by_the_hour_and_by_the_day(book: Book) -> None:
    _filled(book, range(180))
    _roll_up(book, 180)
    assert book.latency.forget_before(121) == 4
    assert {row.minute for row in book.latency.rows()} == set(range(120, 180))
    book.latency.forget_before(24 * 60)
    assert (book.latency.rows(), book.latency.spans()) == ([], [])


def _lost(sequence: int, minute: int, **given: Any) -> ProductException:
    usual = ProductException("NGRID", EPOCH, sequence, "unl.edu", "expired", SOME_TIME + timedelta(minutes=minute))
    return replace(usual, **given)


def test_what_was_lost_is_listed_page_by_page_without_gap_or_double(book: Book) -> None:
    lost = [_lost(number, number // 3, site=("a", "b")[number % 2]) for number in range(25)]
    book.exceptions.add(*lost)
    for limit in (1, 4, 25, 100):
        found, after = [], None
        for _ in lost:
            page = book.exceptions.page(Lost(), after=after, limit=limit)
            found += page.items
            after = page.next
            if after is None:
                break
        assert len(found) == len(lost)
        assert set(found) == set(lost)
        assert [one.at for one in found] == sorted((one.at for one in lost), reverse=True)


def test_what_was_lost_is_narrowed_by_site_feed_time_and_outcome(book: Book) -> None:
    book.exceptions.add(
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
        assert [one.sequence for one in book.exceptions.page(lost).items] == expected, lost
    assert [one.sequence for one in book.exceptions.of_product("NGRID", EPOCH, 4)] == [4]
    with pytest.raises(BadInput, match="no end of a page"):
        book.exceptions.page(Lost(), after="nonsense")
