"""The check that trusts no report: missing, duplicate, different and foreign products."""

import hashlib
import json
from pathlib import Path

import pytest

from downburst.foundation.file_names import ReceivedName, encode
from downburst_app.demo.checker import PlayRecord, check_site, expected_at
from downburst_app.demo.scene import SiteSpec, Wish
from downburst_app.play.player import Sent


def sent(product_id: str, data: bytes = b"x", *, feed: str = "TEXT") -> Sent:
    return Sent(feed, product_id, len(data), hashlib.sha256(data).hexdigest())


def receive(received: Path, product_id: str, data: bytes = b"x", *, feed: str = "TEXT", sequence: int = 1) -> Path:
    path = received / encode(ReceivedName(feed, 7, sequence, product_id))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


ALL_TEXT = SiteSpec("site-1", (Wish("TEXT"),))


def test_everything_there_once_and_equal_is_good(tmp_path: Path) -> None:
    long_id = "é" * 127
    receive(tmp_path, "a/b c")
    receive(tmp_path, long_id, b"", sequence=2)
    receive(tmp_path, "same bytes", sequence=3)
    verdict = check_site(ALL_TEXT, tmp_path, [sent("a/b c"), sent(long_id, b""), sent("same bytes")])
    assert verdict.good
    assert (verdict.expected, verdict.stored, verdict.expected_bytes) == (3, 3, 2)


def test_a_missing_product_is_named(tmp_path: Path) -> None:
    receive(tmp_path, "here")
    verdict = check_site(ALL_TEXT, tmp_path, [sent("here"), sent("lost")])
    assert not verdict.good
    assert verdict.missing == (("TEXT", "lost"),)
    assert (verdict.expected, verdict.stored) == (2, 1)
    assert "1 missing (TEXT: lost)" in verdict.complaint()


def test_an_empty_site_misses_everything(tmp_path: Path) -> None:
    verdict = check_site(ALL_TEXT, tmp_path / "never made", [sent("a")])
    assert not verdict.good
    assert len(verdict.missing) == 1


def test_a_product_under_two_sequences_is_a_duplicate(tmp_path: Path) -> None:
    receive(tmp_path, "twice", sequence=1)
    receive(tmp_path, "twice", sequence=9)
    verdict = check_site(ALL_TEXT, tmp_path, [sent("twice")])
    assert not verdict.good
    assert verdict.duplicates == (("TEXT", "twice"),)
    assert (verdict.stored, verdict.mismatched) == (1, ())


def test_different_bytes_are_a_mismatch_and_not_stored(tmp_path: Path) -> None:
    receive(tmp_path, "a", b"y")
    verdict = check_site(ALL_TEXT, tmp_path, [sent("a", b"x")])
    assert not verdict.good
    assert verdict.mismatched == (("TEXT", "a"),)
    assert (verdict.stored, verdict.missing) == (0, ())


def test_what_was_not_subscribed_or_never_played_is_a_mismatch(tmp_path: Path) -> None:
    receive(tmp_path, "secret", feed="OTHER")
    receive(tmp_path, "never played")
    verdict = check_site(ALL_TEXT, tmp_path, [sent("secret", feed="OTHER")])
    assert not verdict.good
    assert set(verdict.mismatched) == {("OTHER", "secret"), ("TEXT", "never played")}


def test_foreign_names_are_strays_and_hidden_ones_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "TEXT").mkdir()
    (tmp_path / "TEXT" / "notes.txt").write_text("by hand")
    (tmp_path / ".aside").mkdir()
    (tmp_path / ".aside" / "17").write_text("half")
    verdict = check_site(ALL_TEXT, tmp_path, [])
    assert verdict.strays == ("TEXT/notes.txt",)
    assert not verdict.good


def test_patterns_are_searched_and_not_patterns_take_away() -> None:
    site = SiteSpec("s", (Wish("TEXT", "^W", "KOUN"), Wish("TEXT", "urgent"), Wish("OTHER")))
    products = [
        sent("WFUS KOUN"),
        sent("WFUS KTLX"),
        sent("SDUS"),
        sent("KOUN urgent"),
        sent("x", feed="OTHER"),
        sent("x", feed="THIRD"),
    ]
    assert set(expected_at(site, products)) == {("TEXT", "WFUS KTLX"), ("TEXT", "KOUN urgent"), ("OTHER", "x")}


def test_the_record_is_on_disk_before_the_product_leaves_and_refuses_repeats(tmp_path: Path) -> None:
    record = PlayRecord(tmp_path / "played.jsonl")
    record.add(sent("a/é"))
    line = json.loads((tmp_path / "played.jsonl").read_text())
    assert line == {"feed": "TEXT", "id": "a/é", "size": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
    with pytest.raises(ValueError, match="played twice"):
        record.add(sent("a/é", b"other"))
    record.close()
    assert [product.product_id for product in record.sent] == ["a/é"]
