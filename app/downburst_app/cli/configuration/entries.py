"""Entries of a declaration, and the changes that they lead to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from downburst.foundation.errors import BadInput

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One change: its sentence for people, and the request that makes it."""

    what: str
    method: str
    path: tuple[str, ...]
    body: Mapping[str, Any] | None = None


def entries(wanted: Mapping[str, Any], part: str, *needed: str) -> Iterator[Entry]:
    """The entries of a part, without the notes on their origin."""
    for entry in wanted.get(part) or []:
        missing = [name for name in needed if not isinstance(entry, dict) or name not in entry]
        if missing:
            raise BadInput(f"an entry of {part} has no {missing[0]}: {entry!r}; correct the file")
        yield {key: value for key, value in entry.items() if key != "at"}


def named_like(known: list[Entry], key: str, wanted: Entry) -> Entry | None:
    """The known entry with the same name."""
    return next((one for one in known if one[key] == wanted[key]), None)


def some_of(values: Entry, names: tuple[str, ...]) -> Entry:
    """The named members that have a value; an empty one equals the default."""
    return {
        name: compact(values[name])
        for name in names
        if values.get(name) not in (None, "", [], 0.0) or (name in values and values[name] is False)
    }


def compact(value: Any) -> Any:
    """A value without members that are None."""
    if isinstance(value, dict):
        return {name: compact(one) for name, one in value.items() if one is not None}
    return value


def in_words(values: Mapping[str, Any], kind: str) -> str:
    """The members for people; `kind` is the one that holds the name."""
    said = ", ".join(f"{key} {value}" for key, value in values.items() if key != kind)
    return f": {said}" if said else ""
