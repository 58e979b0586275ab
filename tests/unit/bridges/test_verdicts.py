"""Notifications of a source: each product once, updates, deletions, failures, loops, rights and budgets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from downburst.domain.bridges import Last, State
from downburst.wis2.integrity import Integrity
from downburst.wis2.notifications import Kind, Link, Notification
from downburst.wis2.topics import Policy, read_topic
from downburst_bridges.verdicts import Judged, SourceRules, Verdict, judged

TOPIC = read_topic("cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop")
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
ONE = Integrity("sha256", b"one")
LINK = Link("https://wis2.example/1", 1_000)
FIRST = Notification("1", Kind.NEW, "de-dwd/synop/1", NOON, LINK, integrity=ONE)
RULES = SourceRules()


def held(notification: Notification, state: State = State.HELD) -> Last:
    return Last(notification.id, notification.identity, notification.published_at, state)


def verdict(notification: Notification, last: Last | None = None, rules: SourceRules = RULES) -> Verdict:
    found: Judged = judged(TOPIC, notification, last, rules, used_bytes=0)
    assert (found.verdict is Verdict.TAKE) is (found.sentence == "")
    return found.verdict


def later(notification: Notification, number: str, *, kind: Kind = Kind.NEW, digest: bytes = b"two") -> Notification:
    return replace(
        notification,
        id=number,
        kind=kind,
        published_at=notification.published_at + timedelta(minutes=1),
        integrity=Integrity("sha256", digest),
    )


def test_a_product_is_taken_once_whoever_announces_it() -> None:
    assert verdict(FIRST) is Verdict.TAKE
    for state in (State.COMING, State.HELD):
        assert verdict(FIRST, held(FIRST, state)) is Verdict.COPY
        by_a_cache = replace(
            FIRST, id="2", link=Link("https://cache.example/1"), published_at=NOON + timedelta(hours=1)
        )
        assert verdict(by_a_cache, held(FIRST, state)) is Verdict.COPY


def test_without_a_digest_the_publication_time_tells_products_apart() -> None:
    first = replace(FIRST, integrity=None)
    assert verdict(replace(first, id="2"), held(first)) is Verdict.COPY
    newer = replace(first, id="2", published_at=NOON + timedelta(minutes=1), kind=Kind.UPDATE)
    assert verdict(newer, held(first)) is Verdict.TAKE


def test_an_update_is_newer_and_says_so() -> None:
    assert verdict(later(FIRST, "2", kind=Kind.UPDATE), held(FIRST)) is Verdict.TAKE
    assert verdict(later(FIRST, "2"), held(FIRST)) is Verdict.REPEAT
    update = later(FIRST, "2", kind=Kind.UPDATE)
    for minutes in (0, -1):
        not_newer = replace(update, published_at=NOON + timedelta(minutes=minutes))
        assert verdict(not_newer, held(FIRST)) is Verdict.OLDER


def test_updates_in_any_order_end_with_the_newest() -> None:
    one = later(FIRST, "2", kind=Kind.UPDATE)
    two = later(one, "3", kind=Kind.UPDATE, digest=b"three")
    for order in permutations([one, two]):
        last = held(FIRST)
        for notification in order:
            if verdict(notification, last) is Verdict.TAKE:
                last = held(notification)
        assert last == held(two)


def test_after_a_failure_the_next_notification_gets_its_turn() -> None:
    failed = held(FIRST, State.FAILED)
    for notification in (FIRST, replace(FIRST, id="2"), later(FIRST, "2")):
        assert verdict(notification, failed) is Verdict.TAKE


def test_a_deletion_is_recorded_and_the_data_may_come_again() -> None:
    gone = later(FIRST, "2", kind=Kind.DELETION)
    assert verdict(gone, held(FIRST)) is Verdict.DELETE
    assert verdict(gone) is Verdict.DELETE
    assert verdict(replace(gone, published_at=NOON - timedelta(minutes=1)), held(FIRST)) is Verdict.OLDER
    deleted = replace(held(gone, State.DELETED), identity=FIRST.identity)
    assert verdict(later(gone, "3", digest=b"one"), deleted) is Verdict.TAKE


def test_own_data_do_not_come_round() -> None:
    rules = SourceRules(own_centres=frozenset({"de-dwd"}))
    found = judged(TOPIC, FIRST, None, rules, used_bytes=0)
    assert found.verdict is Verdict.REFUSED
    assert "come round" in found.sentence


def test_recommended_data_need_a_source_that_takes_them() -> None:
    recommended = read_topic(TOPIC.text.replace("core", "recommended"))
    assert judged(recommended, FIRST, None, RULES, used_bytes=0).verdict is Verdict.REFUSED
    both = SourceRules(policies=frozenset(Policy))
    assert judged(recommended, FIRST, None, both, used_bytes=0).verdict is Verdict.TAKE
    metadata = read_topic("cache/a/wis2/de-dwd/metadata")
    assert "no topic of data" in judged(metadata, FIRST, None, both, used_bytes=0).sentence


@pytest.mark.parametrize(("used_bytes", "taken"), [(0, True), (9_000, True), (9_001, False)])
def test_a_centre_has_a_budget_for_each_day(used_bytes: int, taken: bool) -> None:
    for rules in (
        SourceRules(bytes_per_day=10_000),
        SourceRules(bytes_per_day=1, bytes_per_day_of={"de-dwd": 10_000}),
    ):
        found = judged(TOPIC, FIRST, None, rules, used_bytes=used_bytes)
        assert (found.verdict is Verdict.TAKE) is taken
        assert taken or "narrow the topics" in found.sentence
