"""The catalogue of stored files agrees with the documentation and with the tests it names."""

import re
from pathlib import Path

import pytest

from kit.damage.injuries import INJURIES
from kit.stored_files import entry_of, markdown, stored_files, unlisted

ROOT = Path(__file__).resolve().parents[3]


def test_the_documentation_shows_the_catalogue() -> None:
    written = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert markdown() in written, "make it anew: cd tests && ../.venv/bin/python -m unit.reliability.write_table"


@pytest.mark.parametrize("test", sorted({test for entry in stored_files() for test in entry.tests}))
def test_each_test_that_is_named_exists(test: str) -> None:
    file, name = test.split("::")
    assert re.search(rf"(fn|def) {name}\b", (ROOT / file).read_text(encoding="utf-8")), test


def test_each_entry_says_what_a_start_makes_of_each_damage_and_names_a_test() -> None:
    for entry in stored_files():
        said = {word for outcome in entry.outcomes.values() for word in outcome.split(" or ")}
        assert "elsewhere" in entry.outcomes or said <= {"healthy", "rebuilt", "reported", "refused"}, entry.paths
        assert set(entry.outcomes) <= {*INJURIES, "any", "elsewhere"}, entry.paths
        assert {"any", "elsewhere"} & set(entry.outcomes), entry.paths
        assert entry.tests, entry.paths


@pytest.mark.parametrize(
    ("place", "path", "holds"),
    [
        ("hub", "ledger.sqlite", "configuration"),
        ("hub", "node/log/IDS%7CDDPLUS/00000000000000000001.segment", "products: records"),
        ("site", "log/X/sequence", "how far sequences"),
        ("site", "state/hubs/b%3A1/identity.json", "credential"),
        ("site", "received/X/7-8_a~/b", "files for local software"),
    ],
)
def test_a_path_finds_its_entry(place: str, path: str, holds: str) -> None:
    found = entry_of("hub" if place == "hub" else "site", path)
    assert found is not None
    assert found.holds.startswith(holds)


def test_a_file_without_an_entry_is_named(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    for name in ("ledger.sqlite", "node/new.state"):
        (tmp_path / name).touch()
    assert list(unlisted("hub", tmp_path)) == ["node/new.state"]
