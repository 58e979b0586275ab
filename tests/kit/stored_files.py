"""The catalogue of stored files, `tests/golden/files.json`: each file of a hub's and of a site's directory.

A new file of a release gets an entry there: its place, its content, its state after `kill -9` and after a power cut,
the report of damage, the reaction to it, and the tests that prove it. `docs/reliability.md` is made from it
(`cd tests && ../.venv/bin/python -m unit.reliability.write_table`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Place = Literal["hub", "site"]
PLACES: tuple[Place, ...] = ("hub", "site")


@dataclass(frozen=True)
class StoredFile:
    """One kind of file. `paths` are `hub:PATTERN` or `site:PATTERN`, relative to the directory of the hub or site."""

    paths: tuple[str, ...]
    holds: str
    kind: str
    """`state`, `journal`, `copy`, `transient`, `lock`, `mark` or `output`; the catalogue says what they mean."""
    kill: str
    power: str
    checksum: str
    damaged: str
    outcomes: Mapping[str, str]
    """By what happens to it (`flipped`, `cut`, `emptied`, `removed`, `scrambled`, else `any`): `healthy`, `rebuilt`,
    `reported` or `refused`; or `elsewhere`: why the scene of these tests has no such file."""
    tests: tuple[str, ...]
    """FILE::NAME of tests that show the promises."""

    def is_at(self, place: Place, path: str) -> bool:
        """True for a path below the directory of a hub or a site, with `/` between its parts."""
        return any(_regex(pattern).fullmatch(f"{place}:{path}") for pattern in self.paths)


def stored_files() -> list[StoredFile]:
    """Every entry, in the catalogue's order: the first that matches a path is its own."""
    entries = json.loads(CATALOGUE.read_text(encoding="utf-8"))["files"]
    return [
        StoredFile(**{**entry, "paths": tuple(entry["paths"]), "tests": tuple(entry["tests"])}) for entry in entries
    ]


def entry_of(place: Place, path: str) -> StoredFile | None:
    """The entry of a file; None if the catalogue lacks it."""
    return next((entry for entry in stored_files() if entry.is_at(place, path)), None)


def unlisted(place: Place, directory: Path) -> Iterator[str]:
    """Files below a real directory that no entry describes."""
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory).as_posix()
        if not path.is_dir() and entry_of(place, relative) is None:
            yield relative


def markdown() -> str:
    """The table of `docs/reliability.md`."""
    rows = [" | ".join(HEADINGS), " | ".join("---" for _ in HEADINGS)]
    for entry in stored_files():
        paths = "<br>".join(f"`{path}`" for path in entry.paths)
        tests = "<br>".join(f"`{test.split('::')[1]}`" for test in entry.tests) or "-"
        outcomes = "<br>".join(f"{injury}: {outcome}" for injury, outcome in entry.outcomes.items())
        columns = (paths, entry.holds, entry.kill, entry.power, entry.checksum, entry.damaged, outcomes, tests)
        rows.append(" | ".join(columns))
    return "".join(f"| {row} |\n" for row in rows)


def _regex(pattern: str) -> re.Pattern[str]:
    known = _REGEXES.get(pattern)
    if known is None:
        pieces = re.split(r"(\*\*|\*)", pattern)
        whole = "".join({"**": ".*", "*": "[^/]*"}.get(piece, re.escape(piece)) for piece in pieces)
        known = _REGEXES[pattern] = re.compile(whole)
    return known


CATALOGUE = Path(__file__).parents[1] / "golden" / "files.json"
HEADINGS = ("file", "holds", "after `kill -9`", "after a power cut", "checksum", "if damaged", "at a start", "test")
_REGEXES: dict[str, re.Pattern[str]] = {}
