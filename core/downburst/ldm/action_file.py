"""`pqact.conf`: the actions of an LDM site, as parsed by a node.

The node has the only parser of such files: the entries that it accepts, ignores or sets aside are those of a site.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from downburst.ldm.lines import Spot


@dataclass(frozen=True, slots=True)
class Action:
    """An entry: an action for every product of these feeds with a matching id."""

    spot: Spot
    feeds: int
    """LDM's bits."""
    pattern: str | None
    """None: the entry gets the products that no other entry matched."""
    does: str
    """file, pipe, exec or nothing."""
    options: tuple[str, ...]
    words: tuple[str, ...]
    """A path, or a command; substitutions untouched."""


@dataclass(frozen=True, slots=True)
class ActionFiles:
    """The contents of action files."""

    actions: tuple[Action, ...] = ()
    set_aside: tuple[tuple[Spot, str], ...] = ()
    """Entries that can't be understood; the others work without them."""
    notes: tuple[tuple[Spot, str], ...] = ()
    """Differences from the behaviour that the file's author may expect."""


def action_files(checked: Mapping[str, Any]) -> ActionFiles:
    """Parses the output of ``downburst-node actions check --json``. An unusable file raises `BadInput`."""
    files = checked["files"]
    for spot, sentence in _problems(files, "errors"):
        raise spot.wrong(sentence)
    entries = [entry for file in files for entry in file["entries"]]
    return ActionFiles(tuple(map(_action, entries)), _problems(files, "set_aside"), _problems(files, "notes"))


def _action(entry: Mapping[str, Any]) -> Action:
    return Action(
        _spot(entry),
        entry["feed_types"],
        entry["pattern"],
        entry["does"],
        tuple(entry["options"]),
        tuple(entry["words"]),
    )


def _problems(files: list[dict[str, Any]], kind: str) -> tuple[tuple[Spot, str], ...]:
    return tuple((_spot(one), one["sentence"]) for file in files for one in file[kind])


def _spot(place: Mapping[str, Any]) -> Spot:
    return Spot(Path(place["file"]), place["line"])


def program(action_or_command: str) -> str:
    """The name of the program that a command line starts."""
    try:
        words = shlex.split(action_or_command)
    except ValueError:
        words = action_or_command.split()
    return Path(words[0]).name if words else ""
