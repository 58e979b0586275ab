"""Notifications of WIS2: what the standard allows, what publishers do wrong, and what is refused."""

import base64
import contextlib
import gzip
import hashlib
import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.foundation.errors import BadInput, BadName
from downburst.wis2.notifications import Kind, Notification, read_notification, sentence_of

BYTES = b"SYNOP of a station\n"
DIGEST = hashlib.sha512(BYTES).digest()
GOOD: dict[str, Any] = {
    "id": "31e9d66a-cd83-4174-9429-b932f1abe1be",
    "conformsTo": ["http://wis.wmo.int/spec/wnm/1/conf/core"],
    "type": "Feature",
    "geometry": {"type": "Point", "coordinates": [6.1, 46.2]},
    "properties": {
        "data_id": "de-dwd/data/core/weather/synop/10381",
        "metadata_id": "urn:wmo:md:de-dwd:synop",
        "pubtime": "2026-11-23T04:50:18Z",
        "datetime": "2026-11-23T04:45:00Z",
        "integrity": {"method": "sha512", "value": base64.b64encode(DIGEST).decode()},
    },
    "links": [
        {"href": "https://wis2.example/10381", "rel": "canonical", "type": "text/plain", "length": len(BYTES)},
        {"href": "https://wis2.example/about", "rel": "license"},
    ],
}
ABSENT = object()


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """The good message with one value changed, or left out."""
    message = deepcopy(GOOD)
    place: Any = message
    for step in path[:-1]:
        place = place[step]
    if to is ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return message


def read(message: object) -> Notification:
    return read_notification(json.dumps(message).encode())


def test_everything_that_counts_is_read() -> None:
    found = read(GOOD)
    assert (found.id, found.kind, found.data_id) == (GOOD["id"], Kind.NEW, GOOD["properties"]["data_id"])
    assert found.published_at == datetime(2026, 11, 23, 4, 50, 18, tzinfo=UTC)
    assert (found.link.url, found.link.length_bytes, found.link.media_type) == (
        "https://wis2.example/10381",
        len(BYTES),
        "text/plain",
    )
    assert found.integrity is not None
    assert found.integrity.is_of(BYTES)
    assert (found.metadata_id, found.cache, found.inline, found.faults) == ("urn:wmo:md:de-dwd:synop", True, None, ())


@pytest.mark.parametrize("kind", list(Kind))
def test_one_link_states_whether_data_are_new_changed_or_gone(kind: Kind) -> None:
    assert read(changed("links", 0, "rel", to=kind.value)).kind is kind


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (changed("links", 0, "length", to=ABSENT), "no `length`"),
        (changed("geometry", to={"type": "Point", "coordinates": "10.0,50.0"}), "no list"),
        (changed("geometry", to=ABSENT), "no `geometry`"),
        (changed("properties", "datetime", to="2026-11-23T04:45:00"), "no `Z`"),
        (changed("properties", "datetime", to=ABSENT), "no `datetime`"),
        ({**changed("conformsTo", to=ABSENT), "version": "v04"}, "v04"),
    ],
)
def test_known_faults_of_publishers_are_read_and_named(message: dict[str, Any], fault: str) -> None:
    found = read(message)
    assert len(found.faults) == 1
    assert fault in sentence_of(found.faults)


def test_times_have_up_to_nine_digits_and_may_be_a_span_or_unknown() -> None:
    late = read(changed("properties", "pubtime", to="2026-11-23T04:50:18.314854383Z"))
    assert late.published_at == datetime(2026, 11, 23, 4, 50, 18, 314_854, tzinfo=UTC)
    assert read(changed("properties", "datetime", to=None)).faults == ()
    span = changed("properties", "datetime", to=ABSENT)
    span["properties"] |= {"start_datetime": "2026-11-23T00:00:00Z", "end_datetime": "2026-11-24T00:00:00Z"}
    assert read(span).faults == ()


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (changed("type", to="Message"), "Feature"),
        (changed("conformsTo", to=["x"]), "does not conform"),
        (changed("id", to="7"), "no UUID"),
        (changed("properties", to=[]), "properties is no JSON object"),
        (changed("properties", "data_id", to=ABSENT), "data_id"),
        (changed("properties", "pubtime", to="yesterday"), "RFC 3339"),
        (changed("properties", "pubtime", to="2026-02-30T00:00:00Z"), "calendar"),
        (changed("properties", "pubtime", to="2026-02-03T00:00:00+01:00"), "in UTC"),
        (changed("properties", "cache", to="no"), "true or false"),
        (changed("links", to=[]), "links"),
        (changed("links", 0, "rel", to="item"), "0 links"),
        (changed("links", 1, "rel", to="update"), "2 links"),
        (changed("links", 0, "href", to="ftp://wis2.example/x"), "HTTP"),
        (changed("links", 0, "href", to="https://a b/"), "HTTP"),
        (changed("links", 0, "href", to="https:///etc/passwd"), "HTTP"),
        (changed("links", 0, "length", to=-1), "length"),
        (changed("links", 0, "length", to=True), "length"),
        (changed("properties", "integrity", to={"method": "md5", "value": ""}), "md5"),
        (changed("properties", "integrity", "value", to="A2KN...S8=="), "base64"),
        ([], "JSON object"),
    ],
)
def test_what_breaks_the_standard_is_refused_with_one_sentence(message: object, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        read(message)


def test_a_data_id_that_is_a_path_out_of_its_place_is_refused() -> None:
    with pytest.raises(BadName):
        read(changed("properties", "data_id", to="a/../../b"))


@pytest.mark.parametrize("payload", [b"", b"\xff", b"{", b"[" * 8_000, b'"' + b"x" * 8_192 + b'"'])
def test_what_is_no_json_or_too_long_is_refused(payload: bytes) -> None:
    with pytest.raises(BadInput):
        read_notification(payload)


@pytest.mark.parametrize("value", ['"\\ud800"', '"a\\uDFFFb"', "NaN", "-Infinity"])
def test_what_could_not_be_written_again_is_refused(value: str) -> None:
    text = json.dumps(GOOD | {"more": "HERE"}).replace('"HERE"', value)
    with pytest.raises(BadInput, match="no JSON in UTF-8"):
        read_notification(text.encode())
    whole = json.dumps(GOOD | {"more": "\U0001f327"})
    assert "ud83c" in whole, "a pair of halves is a character"
    read_notification(whole.encode())


def test_a_digest_may_be_hexadecimal_and_by_each_method() -> None:
    for method in ("sha256", "sha384", "sha512", "sha3-256", "sha3-384", "sha3-512"):
        digest = hashlib.new(method.replace("-", "_"), BYTES).digest()
        for value in (digest.hex(), base64.b64encode(digest).decode()):
            found = read(changed("properties", "integrity", to={"method": method, "value": value})).integrity
            assert found is not None
            assert found.is_of(BYTES)
            assert not found.is_of(BYTES + b"!")
            assert found.base64 == base64.b64encode(digest).decode()


CONTENTS = {
    "utf-8": BYTES.decode(),
    "base64": base64.b64encode(BYTES).decode(),
    "gzip": base64.b64encode(gzip.compress(BYTES)).decode(),
}


@pytest.mark.parametrize("encoding", list(CONTENTS))
def test_bytes_within_the_message_are_taken_once_size_and_digest_agree(encoding: str) -> None:
    content = {"encoding": encoding, "value": CONTENTS[encoding], "size": len(BYTES)}
    assert read(changed("properties", "content", to=content)).inline == BYTES


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"encoding": "utf-8", "value": "x", "size": 457}, "states a size"),
        ({"encoding": "utf-8", "value": "x", "size": 1}, "sha512 digest"),
        ({"encoding": "base64", "value": "?"}, "no base64"),
        ({"encoding": "gzip", "value": "AAAA"}, "no gzip"),
        ({"encoding": "rot13", "value": "x"}, "rot13"),
        ({"encoding": "utf-8", "value": "x" * 4_097}, "4096"),
        ({"encoding": "gzip", "value": base64.b64encode(gzip.compress(bytes(2 << 20))).decode()}, "no gzip"),
        ("x", "no JSON object"),
    ],
)
def test_bytes_within_the_message_that_are_wrong_leave_the_link(content: object, reason: str) -> None:
    found = read(changed("properties", "content", to=content))
    assert found.inline is None
    assert reason in found.inline_refused
    assert found.link.url


def test_copies_by_several_brokers_have_one_identity_and_an_update_another() -> None:
    copy = changed("properties", "pubtime", to="2026-11-23T05:00:00Z") | {
        "id": "a23ef8c3-f21f-4230-bdae-5672d0e2a203"
    }
    assert read(copy).identity == read(GOOD).identity
    other = {"method": "sha256", "value": hashlib.sha256(b"corrected").hexdigest()}
    assert read(changed("properties", "integrity", to=other)).identity != read(GOOD).identity
    without = [changed("properties", "integrity", to=ABSENT) for _ in range(2)]
    without[1]["properties"]["pubtime"] = "2026-11-23T05:00:00Z"
    assert len({read(message).identity for message in without}) == 2


NAMES = st.sampled_from([*GOOD, *GOOD["properties"], "href", "rel", "content", "size", "value", "encoding"])
ANYTHING = st.none() | st.booleans() | st.floats() | st.text()


@given(st.recursive(ANYTHING, lambda one: st.lists(one) | st.dictionaries(NAMES, one)))
def test_any_document_is_read_or_refused(document: object) -> None:
    for message in (document, changed("properties", to=document), changed("links", to=[document])):
        with contextlib.suppress(BadInput):
            read(message)


@given(st.binary(max_size=9_000))
def test_any_bytes_are_read_or_refused(payload: bytes) -> None:
    with pytest.raises(BadInput):
        read_notification(payload)
