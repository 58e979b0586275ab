"""The trace parser: readable lines, and its sentence about an unreadable one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput
from downburst.recordings.traces import LONGEST_LINE_BYTES, Arrival, parse, parse_lines

GOOD = b"90654 20150615000000.009"


def at(text: str) -> int:
    return to_us(datetime.fromisoformat(text).replace(tzinfo=UTC))


def test_a_file_is_read_line_by_line(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_bytes(b"90654 20150615000000.009\r\n\n0 20150615000000.25\n7\t20150615000001.000001")
    assert list(parse(trace)) == [
        Arrival(90654, at("2015-06-15T00:00:00.009")),
        Arrival(0, at("2015-06-15T00:00:00.250")),
        Arrival(7, at("2015-06-15T00:00:01.000001")),
    ]


def test_products_of_one_instant_are_in_order() -> None:
    assert [
        arrival.size_bytes for arrival in parse_lines([b"2 20150615000000.0", b"1 20150615000000.0"], name="t")
    ] == [2, 1]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"hello", "'hello' is not an arrival"),
        (b"-5 20150615000000.009", "is not an arrival"),
        (b"12 2015061500000.009", "is not an arrival"),
        (b"12 20150615000000", "is not an arrival"),
        (b"1234567890123456 20150615000000.0", "is not an arrival"),
        (b"12 20150631000000.0", "20150631000000 does not exist"),
        (b"12 20150615250000.0", "20150615250000 does not exist"),
        (b"12 00000615250000.0", "does not exist"),
        (b"12 20150614235959.999", "before that of the product above it"),
        (b"\xff\x00 20150615000001.0", "is not an arrival"),
    ],
)
def test_a_bad_line_is_named_in_one_sentence(line: bytes, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        list(parse_lines([GOOD, b"", line], name="ngrid.txt"))
    assert caught.value.sentence.startswith("ngrid.txt, line 3: ")
    assert says in caught.value.sentence
    assert "\n" not in caught.value.sentence
    assert caught.value.extra["line"] == 3


def test_a_file_without_line_ends_is_refused_after_a_bounded_read(tmp_path: Path) -> None:
    binary = tmp_path / "volume"
    binary.write_bytes(b"9" * (LONGEST_LINE_BYTES * 3))
    with pytest.raises(BadInput, match="line 1"):
        list(parse(binary))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can't be read"):
        list(parse(tmp_path / "none"))


@given(st.binary(max_size=80))
def test_no_line_does_more_than_parse_or_be_refused(line: bytes) -> None:
    try:
        arrivals = list(parse_lines([line], name="t"))
    except BadInput:
        return
    assert len(arrivals) <= 1


arrivals = st.builds(
    Arrival,
    size_bytes=st.integers(0, 10**15 - 1),
    at_us=st.integers(at("1970-01-01T00:00:00"), at("2099-12-31T23:59:59")),
)


@given(st.lists(arrivals, max_size=20))
def test_what_is_written_is_read_back(wanted: list[Arrival]) -> None:
    ordered = sorted(wanted, key=lambda arrival: arrival.at_us)
    assert list(parse_lines([written(one) for one in ordered], name="t")) == ordered


def written(arrival: Arrival) -> bytes:
    second = datetime.fromtimestamp(arrival.at_us // 1_000_000, UTC)
    return f"{arrival.size_bytes} {second:%Y%m%d%H%M%S}.{arrival.at_us % 1_000_000:06d}".encode()
