"""Environment files: `KEY=VALUE` lines as Docker Compose and shells read them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from downburst.wis2.imports.files import ConfigFile, Spot


@dataclass(frozen=True, slots=True)
class Variable:
    """A line of an environment file."""

    spot: Spot
    name: str
    written: str
    """The value without its quotation marks, before variables in it are replaced."""
    is_literal: bool = False
    """It stands in single quotes: `$` is a character like others."""


def read_variables(file: ConfigFile) -> list[Variable]:
    """All variables in order, repeated ones too; refuses a line that is none."""
    found = [_variable(file.at(number), line) for number, line in enumerate(file.text.split("\n"), 1)]
    return [one for one in found if one is not None]


def value_of(name: str, variables: Mapping[str, Variable]) -> str | None:
    """A variable's value, with those of others put in; `${OTHER}` stays if OTHER is not known."""
    return _filled(variables[name], variables, frozenset({name})) if name in variables else None


def counted(variables: list[Variable]) -> dict[str, Variable]:
    """The variables by name; of repeated ones the last."""
    return {one.name: one for one in variables}


def repeated(variables: list[Variable]) -> Iterator[Variable]:
    """The variables that a later line replaces."""
    last = counted(variables)
    return (one for one in variables if last[one.name] is not one)


def _variable(spot: Spot, line: str) -> Variable | None:
    stripped = line.strip()
    if not stripped or stripped.startswith("#"):
        return None
    found = _LINE.fullmatch(stripped)
    if found is None:
        raise spot.wrong("this is neither NAME=VALUE nor a comment; correct the line")
    rest = found["rest"]
    if rest[:1] not in {'"', "'"}:
        return Variable(spot, found["name"], re.split(r"\s+#", f" {rest}", maxsplit=1)[0].strip())
    quoted = (_SINGLE if rest[0] == "'" else _DOUBLE).fullmatch(rest)
    if quoted is None:
        raise spot.wrong("a quotation mark is not closed, or text follows it; correct the line")
    if rest[0] == "'":
        return Variable(spot, found["name"], quoted["text"], is_literal=True)
    return Variable(spot, found["name"], _ESCAPED.sub(lambda one: _ESCAPES.get(one[1], one[1]), quoted["text"]))


def _filled(one: Variable, variables: Mapping[str, Variable], way: frozenset[str]) -> str:
    if one.is_literal or len(way) > DEEPEST:
        return one.written

    def put(found: re.Match[str]) -> str:
        name = found["braced"] or found["plain"]
        if name in variables and name not in way:
            return _filled(variables[name], variables, way | {name})[:LONGEST_VALUE]
        return found["default"] if found["default"] is not None else found[0]

    return _USED.sub(put, one.written)[:LONGEST_VALUE]


DEEPEST = 8
LONGEST_VALUE = 4_000
_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]{0,199})\s*=\s*(?P<rest>.*)")
_SINGLE = re.compile(r"'(?P<text>[^']*)'\s*(?:#.*)?")
_DOUBLE = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "$": "$"}
_USED = re.compile(
    r"\$\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?::?-(?P<default>[^}]*))?\}|\$(?P<plain>[A-Za-z_][A-Za-z0-9_]*)"
)
