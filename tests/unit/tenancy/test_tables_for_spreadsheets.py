"""Spreadsheets open the tables, and execute text that looks like a formula."""

from datetime import UTC, datetime

import pytest

from downburst_api.http.spreadsheet import csv_answer


def cells(value: object) -> str:
    return bytes(csv_answer("x", [{"a": value}], ("a",)).body).decode().splitlines()[1]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "=cmd|' /C calc'!A0"])
def test_text_that_begins_like_a_formula_is_text(text: str) -> None:
    assert cells(text).lstrip('"').startswith("'")


@pytest.mark.parametrize(("value", "shown"), [(-1.5, "-1.5"), (-3, "-3"), (0, "0"), (None, '""'), ("NGRID", "NGRID")])
def test_numbers_and_names_stay_what_they_are(value: object, shown: str) -> None:
    assert cells(value) == shown


def test_moments_stay_moments() -> None:
    assert cells(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00Z"
