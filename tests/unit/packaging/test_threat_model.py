"""The threat model names existing tests, and each numbered finding has tests of its own."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "threat-model.md"


@cache
def names_of_tests() -> frozenset[str]:
    """Functions of pytest and cargo, and titles of the page's tests."""
    found: set[str] = set()
    for folder, suffix, pattern in PLACES:
        for file in (ROOT / folder).rglob(f"*{suffix}"):
            if not {"node_modules", "target", "__pycache__"} & set(file.parts):
                found.update(re.findall(pattern, file.read_text(errors="replace"), re.MULTILINE))
    return frozenset(found)


def rows(heading: str, end: str) -> list[list[str]]:
    """Cells of the tables between two headings, without the heads of tables."""
    part = PAGE.read_text().partition(f"\n{heading}\n")[2].partition(f"\n{end}")[0]
    lines = [line for line in part.splitlines() if line.startswith("|") and not line.startswith("|---")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] not in ("threat", "number")]


def test_every_threat_has_a_measure_a_place_and_tests_that_exist() -> None:
    threats = rows("## Threats", "## Not defended")
    assert len(threats) >= 30
    for threat in threats:
        assert len(threat) == 4, threat
        tests = re.findall(r"`([^`]+)`", threat[3])
        assert tests, threat[0]
        missing = [name for name in tests if not exists(name)]
        assert not missing, f"{threat[0]}: {missing} is no test"


def test_every_place_that_is_named_exists() -> None:
    for threat in rows("## Threats", "## Not defended"):
        for place in re.findall(r"`([^`]+)`", threat[2]):
            assert any(list(root.glob(place)) for root in ROOTS), f"{threat[0]}: there is no {place}"


@pytest.mark.parametrize("number", range(1, 28))
def test_every_number_that_was_found_has_a_test_of_its_name(number: int) -> None:
    listed = {row[0]: row[-1] for row in rows("## Fixed findings", "\n## ")}
    assert listed[str(number)]
    assert exists(f"finding_{number:02}"), f"no test is named after number {number}"


def test_no_test_is_named_after_a_number_that_is_not_listed() -> None:
    listed = {int(row[0]) for row in rows("## Fixed findings", "\n## ")}
    named = {int(found[1]) for name in names_of_tests() if (found := re.match(r"(?:test_)?finding_(\d+)", name))}
    assert named <= listed


def test_whoever_looks_for_security_finds_the_page() -> None:
    assert "docs/threat-model.md" in (ROOT / "SECURITY.md").read_text()
    assert "../SECURITY.md" in PAGE.read_text()


def exists(name: str) -> bool:
    if name.startswith("finding_"):
        return is_named(int(name.removeprefix("finding_")))
    return name in names_of_tests()


def is_named(number: int) -> bool:
    wanted = re.compile(rf"(?:test_)?finding_{number:02}(?!\d)")
    return any(wanted.match(found) for found in names_of_tests())


ROOTS = [
    ROOT / folder
    for folder in (".", "workers", "api", "api/downburst_api", "services", "core/downburst", "app/downburst_app")
]
"""Folders that may contain the places of the page's third column."""
PLACES = (
    ("tests", ".py", r"^(?:async )?def (test_\w+)"),
    ("workers/crates", ".rs", r"^\s*(?:pub |async )*fn (\w+)"),
    ("workers/crates/log-kafka", ".rs", r"^\s*(?:pub |async )*fn (\w+)"),
    ("services/dashboard/src", ".ts", r"\b(?:it|test)\(\s*[\"'`]([^\"'`]+)"),
)
