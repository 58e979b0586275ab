"""The result of an import: commands, and what became of each statement. Passwords do not occur in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from downburst.wis2.imports.files import Spot


@dataclass(slots=True)
class Imported:
    """The result; `document` is the form for users and programs."""

    bridges: list[dict[str, Any]] = field(default_factory=list)
    publishers: list[dict[str, Any]] = field(default_factory=list)
    feeds: list[dict[str, Any]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    carried: list[dict[str, str]] = field(default_factory=list)
    no_equivalent: list[dict[str, str]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """All parts, empty ones too."""
        return {
            "bridges": self.bridges,
            "publishers": self.publishers,
            "feeds": self.feeds,
            "commands": self.commands,
            "carried": self.carried,
            "no_equivalent": self.no_equivalent,
        }

    def carry(self, at: Spot, line: str, how: str) -> None:
        """Notes a statement that something else in the product covers."""
        self.carried.append({"at": str(at), "line": line, "as": how})

    def without(self, at: Spot, line: str, why: str) -> None:
        """Notes a statement without an equivalent."""
        entry = {"at": str(at), "line": line, "why": why}
        if entry not in self.no_equivalent[-RECENT:]:
            self.no_equivalent.append(entry)

    def sort(self, names: Sequence[str]) -> None:
        """Puts statements in the order of the files and their lines."""
        order = {name: number for number, name in enumerate(names)}

        def place(entry: dict[str, str]) -> tuple[int, int]:
            name, _, line = entry["at"].rpartition(":")
            return order[name], int(line)

        self.carried.sort(key=place)
        self.no_equivalent.sort(key=place)


def stated(name: str, value: str | None, sign: str = ": ") -> str:
    """A statement for people: secrets are left out, long values cut."""
    if value is None:
        return name
    if is_secret(name):
        return f"{name}{sign}…"
    shown = " ".join(_SIGNED_IN.sub(r"\1…@", value).split())
    return f"{name}{sign}{shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + '…'}"


def is_secret(name: str) -> bool:
    """True for the name of a password or key."""
    return _SECRET.search(name) is not None


LONGEST_SHOWN = 120
RECENT = 200
_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|private|(^|[_.-])key$|api_?key|access_?key", re.IGNORECASE
)
_SIGNED_IN = re.compile(r"(//).*@|[^\s:/]+:(?!//).*@", re.DOTALL)
"""User and password in an address; to the last @, for a password may hold one."""
