"""The catalogue of handlers agrees with the code, the documentation and the tests that it names."""

import re
from itertools import chain
from pathlib import Path

import pytest

from kit.handler_outcomes import markdown, outcomes
from kit.handlers import HANDLERS

ROOT = Path(__file__).resolve().parents[3]
KNOWN = outcomes()


def test_the_catalogue_has_every_handler_that_the_code_names_and_no_other() -> None:
    assert KNOWN.by_handler.keys() | KNOWN.not_entered.keys() == HANDLERS.keys()
    assert KNOWN.by_handler.keys().isdisjoint(KNOWN.not_entered)
    assert KNOWN.alone.keys() <= KNOWN.by_handler.keys()


def test_each_process_has_tests_and_each_outcome_is_one_of_two() -> None:
    assert {process for found in KNOWN.by_handler.values() for process in found} == KNOWN.tests.keys()
    assert {word for found in KNOWN.by_handler.values() for word in found.values()} == {"goes on", "ends"}


@pytest.mark.parametrize("test", sorted({*chain.from_iterable(KNOWN.tests.values()), *KNOWN.alone.values()}))
def test_each_test_that_is_named_exists(test: str) -> None:
    file, name = test.split("::")
    assert re.search(rf"def {name}\b", (ROOT / file).read_text(encoding="utf-8")), test


def test_the_documentation_shows_the_catalogue() -> None:
    written = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert markdown() in written, "make it anew: cd tests && ../.venv/bin/python -m unit.reliability.write_table"
