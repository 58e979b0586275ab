"""Questions to replay services and their answers: pages of any size and order, and topics with wildcards."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from downburst.foundation.errors import BadInput
from downburst.wis2.notifications import LONGEST_BYTES, read_notification
from downburst.wis2.replay import Page, Replayed, Walk, fits, items_url, prefixes_of, read_page
from kit.wis2.services import Collection, keep_notification, replay_service
from unit.bridges.test_intake import TOPIC, message

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def walked(service: Collection, prefix: str = "cache/a/wis2") -> list[Replayed]:
    walk, found = Walk(prefix, NOON, NOON + timedelta(hours=1)), list[Replayed]()
    for _ in range(200):
        page = read_page(service.answer(walk.parameters))
        found += page.notifications
        walk.take(page)
        if walk.is_over:
            return found
    raise AssertionError("a walk without an end")


def published(number: int, seconds: float) -> dict[str, Any]:
    at = (NOON + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return message(number, of=number, pubtime=at)


@pytest.mark.parametrize("apart_s", [0.0, 0.01, 0.9, 3.0])
@pytest.mark.parametrize("most_items", [7, 100, 10_000])
def test_a_walk_brings_everything_however_close_it_was_published(apart_s: float, most_items: int) -> None:
    service = replay_service(most_items)
    for number in range(60):
        keep_notification(service, TOPIC, published(number, number * apart_s))
    keep_notification(service, TOPIC, published(99, 3_700))
    found = {json.loads(one.payload)["id"] for one in walked(service)}
    assert found == {published(number, 0)["id"] for number in range(60)}


def test_a_service_that_does_not_sort_is_followed_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    service = replay_service(7)
    for number in range(30):
        keep_notification(service, TOPIC, published(number, number * 7 % 30 * 60))
    answer = service.answer
    monkeypatch.setattr(
        service, "answer", lambda asked: answer({name: it for name, it in asked.items() if name != "sortby"})
    )
    assert len({one.payload for one in walked(service)}) == 30


def test_a_notification_is_as_it_was_before_the_service_added_its_topic() -> None:
    service = replay_service()
    stated = message(1, of=1, title="Zürich")
    keep_notification(service, TOPIC, stated | {"properties": stated["properties"] | {"pubtime": NOON.isoformat()}})
    (found,) = walked(service)
    assert found.topic == TOPIC
    assert "topic" not in json.loads(found.payload)["properties"]
    assert read_notification(found.payload).data_id == "de-dwd/synop/1"
    assert len(found.payload) < LONGEST_BYTES


@pytest.mark.parametrize(
    ("document", "words"),
    [(b"<html>", "other than JSON"), (b"[]", "no list"), (b'{"features": {}}', "no list"), (b"[" * 99_999, "JSON")],
)
def test_other_answers_are_one_sentence(document: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read_page(document)


def test_features_that_are_no_notifications_are_passed_over() -> None:
    features = [None, {}, {"properties": {"topic": 7}}, {"properties": {"pubtime": "now", "topic": TOPIC}}]
    page = read_page(json.dumps({"features": features, "numberMatched": True, "links": [{"rel": "next"}]}).encode())
    assert page == Page(page.notifications, 4, (), None, has_next=True)
    assert [one.topic for one in page.notifications] == [TOPIC]


def test_topics_are_asked_for_by_their_begin() -> None:
    assert prefixes_of(["cache/a/wis2/+/data/core/#", "cache/a/wis2/de-dwd/data/#"]) == ["cache/a/wis2"]
    assert prefixes_of(["a/b", "a/bc/#", "a/b/c"]) == ["a/b", "a/bc"]
    assert prefixes_of(["+/a/wis2/#", "cache/#"]) == [""]
    assert prefixes_of([f"origin/a/wis2/c{number}/#" for number in range(50)]) == [""]
    assert "q" not in Walk("", NOON, NOON).parameters


@pytest.mark.parametrize(
    ("topic", "wanted", "good"),
    [
        ("a/b/c", "a/b/c", True),
        ("a/b/c", "a/#", True),
        ("a", "a/#", True),
        ("a/b/c", "a/+/c", True),
        ("a/b/c", "+/+", False),
        ("a/b", "a/b/+", False),
        ("b/a", "a/#", False),
    ],
)
def test_wildcards_are_those_of_mqtt(topic: str, wanted: str, good: object) -> None:
    assert fits(topic, ["x", wanted]) is good


def test_the_address_of_the_service_its_collection_or_its_items_will_do() -> None:
    items = "https://replay.example/x/collections/wis2-notification-messages/items"
    given = ("https://replay.example/x", "https://replay.example/x/", items, items.removesuffix("/items"))
    assert {items_url(one) for one in given} == {items}
