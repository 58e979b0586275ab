"""Notifications that this hub publishes: valid ones, within their bounds, and read back as they were meant."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.foundation.errors import BadInput
from downburst.wis2.integrity import Integrity
from downburst.wis2.notifications import Kind, read_notification
from downburst.wis2.writing import Announced, notification_of

BYTES = "Wetter in München\r\r\n".encode()
NOON = datetime(2026, 11, 29, 12, 0, 0, 123_000, tzinfo=UTC)


def announced(content: bytes, kind: Kind = Kind.NEW) -> Announced:
    return Announced(
        "31e9d66a-cd83-4174-9429-b932f1abe1be",
        kind,
        "us-ours/data/core/weather/synop/1",
        "urn:wmo:md:us-ours:synop",
        NOON,
        "https://wis2.example/data/1",
        len(content),
        Integrity("sha512", hashlib.sha512(content).digest()),
        data_at=NOON - timedelta(minutes=5),
        gts=("SMDL01", "EDZW"),
        producer="de-dwd",
    )


def test_a_notification_says_all_that_is_known() -> None:
    wanted = announced(BYTES)
    payload = notification_of(wanted, BYTES)
    message, found = json.loads(payload), read_notification(payload)
    assert (found.id, found.kind, found.data_id, found.published_at) == (wanted.id, Kind.NEW, wanted.data_id, NOON)
    assert (found.link.url, found.link.length_bytes, found.integrity) == (wanted.url, len(BYTES), wanted.integrity)
    assert (found.inline, found.inline_refused, found.faults) == (BYTES, "", ())
    assert message["geometry"] is None
    assert message["properties"]["pubtime"] == "2026-11-29T12:00:00.123Z"
    assert message["properties"]["gts"] == {"ttaaii": "SMDL01", "cccc": "EDZW"}
    assert message["properties"]["producer"] == "de-dwd"
    assert "cache" not in message["properties"]


def test_a_deletion_brings_no_data() -> None:
    message = json.loads(notification_of(announced(BYTES, Kind.DELETION), BYTES))
    assert message["links"][0]["rel"] == "deletion"
    assert {"integrity", "content"} & message["properties"].keys() == set()


@given(st.binary(max_size=8_192) | st.text(max_size=5_000).map(str.encode))
def test_any_content_is_announced_within_the_bounds(content: bytes) -> None:
    payload = notification_of(announced(content), content)
    assert len(payload) <= 8_192
    assert read_notification(payload).inline in {None, content}


@pytest.mark.parametrize(("length", "inline"), [(3_000, True), (3_072, True), (3_073, False)])
def test_content_in_base64_has_at_most_4096_characters(length: int, inline: bool) -> None:
    content = b"\xff" * length
    assert (read_notification(notification_of(announced(content), content)).inline is not None) is inline


@pytest.mark.parametrize("gts", [("SMDL1", "EDZW"), ("smdl01", "EDZW"), ("SMDL01", "EDZ")])
def test_a_heading_that_is_none_is_refused(gts: tuple[str, str]) -> None:
    with pytest.raises(BadInput, match="four letters"):
        notification_of(replace(announced(BYTES), gts=gts))


def test_what_the_official_tests_would_refuse_is_not_made() -> None:
    for wrong in ({"id": "7"}, {"url": "ftp://x/1"}, {"data_id": ""}, {"length_bytes": -1}):
        with pytest.raises(BadInput):
            notification_of(replace(announced(BYTES), **wrong))
