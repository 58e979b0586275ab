"""XML of a hostile provider: every message is read into bounded values or refused in one sentence."""

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst_circuits.nsi.soap.hardened import DEPTH_MAX, ELEMENTS_MAX, MESSAGE_BYTES_MAX, Unreadable
from downburst_circuits.nsi.soap.reading import read
from kit.nsi import words

GRANTED = words.Granted(
    1, 50, "urn:ogf:network:a?vlan=102", "urn:ogf:network:b?vlan=123", "2026-01-01T00:00:00Z", None
)
TOLD = words.criteria(GRANTED)
MESSAGES = [
    words.fault("00705", "CAPACITY_UNAVAILABLE"),
    words.reserve_response("c-1"),
    words.envelope(words.reserve_confirmed("c-1", GRANTED)),
    words.envelope(words.failed("reserve", "c-1", "00705", "no")),
    words.summary(words.reservation("c-1", "urn:uuid:2", TOLD, words.states(active=True))),
    words.results(("urn:uuid:9", words.reserve_confirmed("c-1", GRANTED, "reserveConfirmed"))),
    words.notice("reserveTimeout", "c-1", "<timeoutValue>30</timeoutValue>"),
]
ENTITY = b"<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>"
CONFIRMED = MESSAGES[2]


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "not XML"),
        (b"<a>", "not XML"),
        (b"\xff\xfe<\x00a\x00/\x00>\x00", "another encoding"),
        (ENTITY + b"<a>&x;</a>", "document type"),
        (CONFIRMED.replace(b"<s:Envelope", ENTITY + b"<s:Envelope"), "document type"),
        (CONFIRMED.replace(b"c-1", b"&x;"), "not XML"),
        (b"<a>" * (DEPTH_MAX + 1), "nests more than"),
        (b"<a>" * 5_000, "Excessive depth"),
        (b"<a>" + b"<b/>" * (ELEMENTS_MAX + 1) + b"</a>", "more than 40000 elements"),
        (b" " * (MESSAGE_BYTES_MAX + 1), "at most 1000000 are read"),
        (b"<a/>", "is 'a', not an envelope"),
        (CONFIRMED.replace(b"xmlsoap.org/soap/envelope", b"w3.org/2003/05/soap"), "not an envelope of SOAP 1.1"),
        (words.envelope(""), "Envelope/Body has 0 elements"),
        (words.envelope("<c:acknowledgment/><c:acknowledgment/>"), "Envelope/Body has 2 elements"),
        (words.envelope("<c:reserve/>"), "'reserve', which no provider sends"),
        (CONFIRMED.replace(b">50<", b">5e1<"), "capacity is '5e1', not a whole number between 0 and 100000000"),
        (CONFIRMED.replace(b">50<", b">-1<"), "not a whole number"),
        (CONFIRMED.replace(b">50<", b">" + b"9" * 19 + b"<"), "not a whole number"),
        (CONFIRMED.replace(b">50<", b">" + b"9" * 5_000 + b"<"), "has 5000 characters"),
        (CONFIRMED.replace(b"<capacity>50", "<capacity>\u0665".encode()), "not a whole number"),
        (CONFIRMED.replace(b"version='1'", b""), "criteria lacks the attribute version"),
        (CONFIRMED.replace(b"2026-01-01T00:00:00Z", b"yesterday"), "startTime is 'yesterday', not an instant"),
        (CONFIRMED.replace(b"?vlan=102", b"?vlan=9999"), "sourceSTP: STP urn:ogf:network:a has the VLANs"),
        (CONFIRMED.replace(b"<connectionId>c-1</connectionId>", b""), "reserveConfirmed lacks connectionId"),
        (
            CONFIRMED.replace(b"<connectionId>c-1", b"<connectionId>c-1</connectionId><connectionId>c"),
            "is there 2 times",
        ),
        (CONFIRMED.replace(b"c-1", b"c 1"), "not an identifier of visible ASCII"),
        (CONFIRMED.replace(b"c-1", b"c" * 300), "has 300 characters; at most 255 are read"),
        (CONFIRMED.replace(b"h:nsiHeader", b"h:other"), "lacks nsiHeader"),
    ],
)
def test_a_bad_message_is_refused_in_one_sentence(data: bytes, part: str) -> None:
    with pytest.raises(Unreadable) as refusal:
        read(data)
    assert part in refusal.value.sentence
    assert "\n" not in refusal.value.sentence
    assert len(refusal.value.sentence) < 700


def test_words_of_a_provider_are_cut_and_without_control_characters() -> None:
    message = read(words.fault("00500", "first\n\tsecond \u202e" + "x" * 3_000))
    text = getattr(message.body, "text", "")
    assert text.startswith("first second")
    assert len(text) <= 500
    assert text.isprintable()


def test_damaged_messages_are_read_or_refused() -> None:
    """Bytes flipped, cut, doubled and swapped between messages."""
    first = int(os.environ.get("DOWNBURST_SEED", "1"))
    print(f"replay: DOWNBURST_SEED={first} pytest tests/unit/circuits/nsi/test_hostile_xml.py -k damaged")
    chance = random.Random(first)
    refused = 0
    for _ in range(3_000):
        data = bytearray(chance.choice(MESSAGES))
        for _ in range(chance.randint(1, 4)):
            _damage(data, chance)
        try:
            read(bytes(data))
        except Unreadable:
            refused += 1
    assert refused > 1_000


def _damage(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    length = chance.randint(1, 60)
    match chance.randrange(4):
        case 0:
            data[at] = chance.randrange(256)
        case 1:
            del data[at : min(at + length, len(data) - 1)]
        case 2:
            data[at:at] = data[at : at + length]
        case _:
            other = chance.choice(MESSAGES)
            begin = chance.randrange(len(other))
            data[at : at + length] = other[begin : begin + length]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        read(data)


@given(st.text(max_size=60))
def test_any_value_is_read_or_refused(text: str) -> None:
    """In each place of a confirmation."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").encode("utf-8", "surrogatepass")
    for old in (b">50<", b">2026-01-01T00:00:00Z<", b">urn:ogf:network:a?vlan=102<", b">c-1<", b">Bidirectional<"):
        try:
            read(CONFIRMED.replace(old, b">" + escaped + b"<"))
        except Unreadable as error:
            assert len(error.sentence) < 700  # noqa: PT017
