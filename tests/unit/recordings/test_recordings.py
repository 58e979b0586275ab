"""Recordings of every kind, and one sentence with the line number for each unreadable one."""

import gzip
from pathlib import Path

import pytest

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Kind, Transfer, recording, report_of
from unit.scheduler.feeds import shared_data

TRACE = b"90654 20150615000000.009\n91495 20150615000000.211\n"
AT_US = 1_434_326_400_009_000


def products(path: Path, *, sort: bool = False, columns: str | None = None) -> list[tuple[int, int]]:
    with recording(path, columns=columns) as found:
        assert found.kind is Kind.PRODUCTS
        pieces = list(found.products(sort=sort))
    return [(int(at), int(size)) for piece in pieces for at, size in zip(piece.at_us, piece.size_bytes, strict=True)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "feed"


def test_a_trace_plain_and_packed(file: Path) -> None:
    file.write_bytes(b"\n" + TRACE)
    plain = products(file)
    file.write_bytes(gzip.compress(TRACE))
    assert plain == products(file) == [(AT_US, 90654), (AT_US + 202_000, 91495)]


@pytest.mark.parametrize(
    "text",
    [
        "size_bytes,time\n90654,2015-06-15T00:00:00.009Z\n",
        'time,product,size\n2015-06-15T02:00:00.009+02:00,"a, b",90654\n',
        "size,created_at\n90654,20150615000000.009\n",
        "at_ms,bytes\n1434326400009,90654\n",
        "Arrival (ms),Size (bytes)\n1434326400009,90654\n",
        "90654,1434326400009,202\n",
        "timestamp,size\n1434326400.009,90654\n",
    ],
)
def test_csv_by_the_names_of_its_columns(file: Path, text: str) -> None:
    file.write_text(text)
    assert products(file) == [(AT_US, 90654)]


def test_columns_can_be_named_for_a_file_without_a_header(file: Path) -> None:
    file.write_text("x,1.5,7\n")
    assert products(file, columns="id,time_s,size") == [(1_500_000, 7)]


def test_a_file_out_of_order_can_be_sorted(file: Path) -> None:
    file.write_text("size,time_s\n1,5\n2,4\n")
    assert products(file, sort=True) == [(4_000_000, 2), (5_000_000, 1)]
    with pytest.raises(BadInput, match="feed, line 3: its time is before"):
        products(file)
    file.write_bytes(b"".join(reversed(TRACE.splitlines(keepends=True))))
    assert products(file, sort=True) == [(AT_US, 90654), (AT_US + 202_000, 91495)]


def test_transfers(file: Path) -> None:
    file.write_text("start,duration_s,size_bytes,peer\n2015-06-15T00:00:00Z,2.5,1000,ncar\n")
    with recording(file) as found:
        assert found.kind is Kind.TRANSFERS
        assert list(found.transfers()) == [Transfer(AT_US - 9_000, 2.5, 1000, "ncar")]


def test_reports_of_rtstats(file: Path) -> None:
    file.write_text(
        "20160929125247 20160929125248 ingest1 NEXRAD2 rpga1_v_140.172.24.16 187 22151151 0.596 -1.16 11@0022 6.8.1\n"
    )
    with recording(file) as found:
        assert found.kind is Kind.REPORTS
        (report,) = found.reports()
    assert (report.host, report.feed, report.products, report.bytes) == ("ingest1", "NEXRAD2", 187, 22151151)
    assert report.mean_latency_s == -1.16, "clocks are wrong at some sites, and that is worth knowing"


REPORT = "20160929125247 20160929125248 ingest1 NEXRAD2 rpga1_v_140.172.24.16 187 22151151 0.596 1.16 11@0022 6.8.1"


@pytest.mark.parametrize(
    ("given", "wrong", "says"),
    [
        (" 0.596 ", " nan ", "nan can't be a newest"),
        (" 1.16 ", " inf ", "inf can't be a latency"),
        (" 22151151 ", " -7 ", "-7 can't be a size"),
        (" 11@0022 ", " x@0022 ", "'x@0022' is not a worst latency"),
    ],
)
def test_a_report_without_its_numbers_is_refused(file: Path, given: str, wrong: str, says: str) -> None:
    file.write_text(f"{REPORT}\n{REPORT.replace(given, wrong)}\n")
    with recording(file) as found, pytest.raises(BadInput, match=f"feed, line 2: {says}"):
        list(found.reports())


@pytest.mark.parametrize(
    ("given", "absurd"),
    [
        (" 187 ", " 1e308 "),
        (" 22151151 ", f" {2**63} "),
        (" 1.16 ", " -1e300 "),
        (" ingest1 ", f" {'x' * 900} "),
        (" NEXRAD2 ", " \x1b[31mNEXRAD2 "),
        ("20160929125247 ", "1e300 "),
        (" 187 ", " \ud800 "),
    ],
)
def test_a_report_that_anybody_may_push_holds_what_can_be_kept_or_is_none(given: str, absurd: str) -> None:
    assert report_of(REPORT).products == 187
    with pytest.raises(BadInput):
        report_of(REPORT.replace(given, absurd))


BAD: list[tuple[bytes, int, str]] = [
    (b"", 1, "holds no product"),
    (b"\n \n", 1, "holds no product"),
    (gzip.compress(b"", mtime=0), 1, "holds no product"),
    (TRACE + b"-5 20150615000001.000\n", 3, "is not an arrival"),
    (TRACE + b"nan 20150615000001.000\n", 3, "is not an arrival"),
    (TRACE + b"7,20150615000001\n", 3, "is not an arrival"),
    (TRACE + b"5 20150614000000.000\n", 3, "before that of the product above"),
    (b"size,time_s\n-1,0\n", 2, "not below zero"),
    (b"size,time_s\nnan,0\n", 2, "must be finite"),
    (b"size,time_s\n1,inf\n", 2, "must be finite"),
    (b"size,time_s\n1.5,0\n", 2, "whole number of bytes"),
    (b"size,time_s\n1\n", 2, "the row has 1 columns and should have 2"),
    (b"size,time\n1,yesterday\n", 2, "is not a time"),
    (b"size,time_s\n1,1e300\n", 2, "beyond the year 9999"),
    (b"size,time\n1,20151340000000\n", 2, "is not a time"),
    (b"size,time_s\nmany,0\n", 2, "is not a number"),
    (b"size,time_s\n90654 20150615000000.009\n", 2, "should have 2"),
    (b"alpha,beta\n1,2\n", 1, "name the columns with --columns"),
    (b"\x00\xff\x00\n", 1, "is not an arrival"),
]


@pytest.mark.parametrize(("content", "line", "says"), BAD)
def test_bad_input_is_one_sentence_with_the_line(file: Path, content: bytes, line: int, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        products(file)
    assert caught.value.sentence.startswith(f"feed, line {line}: ")
    assert says in caught.value.sentence
    assert caught.value.extra["line"] == line


@pytest.mark.parametrize("content", [gzip.compress(TRACE, mtime=0)[:-9], b"\x1f\x8bnothing of the kind"])
def test_a_damaged_archive_is_said(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(BadInput, match="can't be read"):
        products(file)


def test_a_product_of_7_gb_is_a_product(file: Path) -> None:
    file.write_bytes(TRACE + b"7336804379 20150615000001.000\n")
    assert products(file)[-1][1] == 7_336_804_379


def test_progress_goes_up_to_the_end_of_the_file(file: Path) -> None:
    file.write_bytes(TRACE[:25] * 20_000)
    told: list[float] = []
    with recording(file, progress=told.append) as found:
        list(found.products())
    assert told == sorted(told)
    assert 0 < told[0] < 0.6 < told[-1] <= 1


@pytest.mark.parametrize("name", ["s3-listing-nexrad2-KFTG-20241214.csv", "nexrad3-20150911T2259.txt"])
def test_recorded_files_are_read(name: str) -> None:
    assert len(products(shared_data() / "traces" / name)) > 100
