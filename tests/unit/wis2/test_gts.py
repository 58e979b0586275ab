"""Headings of bulletins."""

import pytest

from downburst.wis2.gts import Heading, heading_in


@pytest.mark.parametrize(
    ("content", "heading"),
    [
        (b"\x01\r\r\n123\r\r\nSMVX52 TJSJ 291200\r\r\nAAXX", Heading("SMVX52", "TJSJ", "291200")),
        (b"\x01\r\r\n12345\r\r\nSAUS70 KWBC 291200 CCA\r\r\nMETAR", Heading("SAUS70", "KWBC", "291200", "CCA")),
        (b"ISMD01 EDZW 290600 RRB\nBUFR", Heading("ISMD01", "EDZW", "290600", "RRB")),
        (b"TTAAII CCCC 290600\n", None),
        (b"SMVX52 TJSJ 296000\r\r\n", None),
        (b"", None),
        (b"\xff" * 500, None),
        (b"x" * 200 + b"\nSMVX52 TJSJ 291200\r\r\n", None),
    ],
)
def test_a_heading_is_found_in_the_first_bytes(content: bytes, heading: Heading | None) -> None:
    assert heading_in(content) == heading


def test_a_heading_is_the_end_of_a_gateways_topic() -> None:
    assert Heading("SMVX52", "TJSJ", "291200").levels == "S/M/V/X/52/TJSJ"


@pytest.mark.parametrize(
    ("bbb", "is_update"), [(None, False), ("CCA", True), ("AAB", True), ("RRA", False), ("PAA", False)]
)
def test_corrections_and_amendments_are_updates(bbb: str | None, is_update: bool) -> None:
    assert Heading("SMVX52", "TJSJ", "291200", bbb).is_update is is_update
