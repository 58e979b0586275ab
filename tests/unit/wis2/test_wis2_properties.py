"""What a product keeps of its notification."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.foundation.errors import BadInput
from downburst.wis2.properties import MOST_BYTES, properties_of, stated_in
from downburst.wis2.topics import read_topic
from unit.wis2.test_notifications import BYTES, GOOD, changed

TOPIC = read_topic("cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop")


def test_the_notification_comes_back_as_it_came_without_the_bytes() -> None:
    content = {"encoding": "utf-8", "value": BYTES.decode(), "size": len(BYTES)}
    message = changed("properties", "content", to=content) | {"remark": "Größe"}
    stated = stated_in(properties_of(TOPIC, json.dumps(message).encode()))
    assert stated is not None
    assert stated.document == GOOD | {"remark": "Größe"}
    assert (stated.topic, stated.notification.data_id) == (TOPIC, GOOD["properties"]["data_id"])
    assert not stated.shortened


def test_a_notification_of_the_greatest_length_is_shortened_to_what_bridges_need() -> None:
    message = GOOD | {"remark": "x" * (8_192 - len(json.dumps(GOOD)) - 14)}
    payload = json.dumps(message).encode()
    assert len(payload) == 8_192
    kept = properties_of(TOPIC, payload)
    assert len(kept) <= MOST_BYTES
    stated = stated_in(kept)
    assert stated is not None
    assert stated.shortened
    assert stated.document["properties"] == GOOD["properties"]
    assert stated.document["links"] == GOOD["links"][:1]


def test_a_notification_that_can_not_be_shortened_is_refused() -> None:
    message = changed("properties", "gts", to={"ttaaii": "x" * 7_900})
    with pytest.raises(BadInput, match="8192"):
        properties_of(TOPIC, json.dumps(message).encode())


@given(
    st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(lambda one: json.dumps(one).encode())
)
def test_other_properties_state_nothing(properties: bytes) -> None:
    assert stated_in(properties) is None


@pytest.mark.parametrize(
    "document",
    [
        {"source": "ldm"},
        {"source": "wis2"},
        {"source": "wis2", "topic": 7, "notification": GOOD},
        {"source": "wis2", "topic": "x", "notification": GOOD},
        {"source": "wis2", "topic": TOPIC.text, "notification": [GOOD]},
        {"source": "wis2", "topic": TOPIC.text, "notification": {}},
    ],
)
def test_damaged_properties_state_nothing(document: object) -> None:
    assert stated_in(json.dumps(document).encode()) is None
