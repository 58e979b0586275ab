"""`pqact.conf`: what an LDM site does with products.

Fields are separated by tabs; an entry goes on in lines that begin with a blank.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from downburst.errors import BadInput
from downburst.ldm.feed_types import parse_feed_type
from downburst.ldm.lines import Spot, included, read_lines


@dataclass(frozen=True, slots=True)
class Action:
    """An entry: every product of these feeds whose id matches is given to the action."""

    spot: Spot
    feeds: int
    pattern: str
    name: str
    """NOOP, FILE, STDIOFILE, DBFILE, EXEC or PIPE."""
    options: tuple[str, ...]
    arguments: str
    """A path or a command, its substitutions untouched."""

    @property
    def is_rest(self) -> bool:
        """It gets what no other entry matched."""
        return self.pattern == "^_ELSE_$"


def read_action_file(path: Path) -> list[Action]:
    """The entries in order, those of included files in the place of the INCLUDE."""
    return _read(path, way=())


def _read(path: Path, *, way: tuple[Path, ...]) -> list[Action]:
    found: list[Action] = []
    for spot, entry in _entries(path):
        include = _INCLUDE.match(entry)
        if include:
            inner = included(spot, include[1], (*way, path.resolve()))
            found += _read(inner, way=(*way, path.resolve()))
        else:
            found.append(_action(spot, entry))
    return found


def _entries(path: Path) -> Iterator[tuple[Spot, str]]:
    """Entries with the lines that go on joined. Comments may stand between the lines of an entry."""
    begun: tuple[Spot, str] | None = None
    for spot, line in read_lines(path):
        if line.startswith("#") or not line.strip():
            continue
        if line[0].isspace():
            if begun is None:
                raise spot.wrong(
                    "the line begins with a blank and goes on with nothing; begin an entry at its first column"
                )
            begun = (begun[0], f"{begun[1]}\t{line.strip()}")
            continue
        if begun:
            yield begun
        begun = (spot, line.rstrip())
    if begun:
        yield begun


def _action(spot: Spot, entry: str) -> Action:
    fields = [field.strip(" ") for field in re.split(r"\t+", entry)]
    if len(fields) < 3:
        raise spot.wrong("an entry is feed, pattern and action, separated by tabs; this one has too few fields")
    feeds, pattern, rest = fields[0], fields[1], fields[2:]
    try:
        bits = parse_feed_type(feeds)
    except BadInput as error:
        raise spot.wrong(error.sentence) from None
    words = rest[0].split(None, 1)
    name = words[0].upper() if words else ""
    if name not in OPTIONS:
        raise spot.wrong(f"{name or 'an empty field'} is no action; there are {', '.join(OPTIONS)}")
    options, arguments = _options(spot, name, "\t".join([*words[1:], *rest[1:]]))
    if not arguments and name != "NOOP":
        raise spot.wrong(f"{name} needs {'a command' if name in COMMANDS else 'a path'}")
    return Action(spot, bits, pattern, name, options, arguments)


def _options(spot: Spot, name: str, text: str) -> tuple[tuple[str, ...], str]:
    """The options at the beginning, and what is behind them."""
    options: list[str] = []
    text = text.strip()
    while found := _OPTION.match(text):
        if found[1] not in OPTIONS[name]:
            raise spot.wrong(f"{name} has no option -{found[1]}")
        options.append(found[1])
        text = text[found.end() :]
    return tuple(options), re.sub(r"\t+", " ", text)


def program(action_or_command: str) -> str:
    """The name of the program that a command line starts."""
    try:
        words = shlex.split(action_or_command)
    except ValueError:
        words = action_or_command.split()
    return Path(words[0]).name if words else ""


_FILE_OPTIONS = ("overwrite", "flush", "close", "strip", "log", "metadata", "removewmo", "edex")

OPTIONS = {
    "NOOP": (),
    "FILE": _FILE_OPTIONS,
    "STDIOFILE": _FILE_OPTIONS,
    "DBFILE": (),
    "EXEC": ("wait",),
    "PIPE": ("strip", "flush", "close", "metadata"),
}
"""Actions with their options."""

COMMANDS = ("EXEC", "PIPE")

_INCLUDE = re.compile(r'(?i)INCLUDE\s+"?([^"\t]+?)"?\s*$')
_OPTION = re.compile(r"-([a-z]+)(?:\s+|$)")
