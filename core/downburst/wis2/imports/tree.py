"""YAML and JSON as values with the lines on which they stand; numbers and dates stay text."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml  # type: ignore[import-untyped]

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.files import ConfigFile


@dataclass(frozen=True, slots=True)
class Leaf:
    """A text, number or date as it is written; None: null."""

    line: int
    text: str | None


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    line: int
    items: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value."""

    line: int
    key: str
    value: "Tree"


@dataclass(frozen=True, slots=True)
class Table:
    """Keys with values, in order; of a key that stands there twice the last one counts."""

    line: int
    entries: tuple[Entry, ...]

    def entry(self, *path: str) -> Entry | None:
        """The entry at a path of keys."""
        found = next((one for one in reversed(self.entries) if one.key == path[0]), None)
        if found is None or len(path) == 1:
            return found
        return found.value.entry(*path[1:]) if isinstance(found.value, Table) else None

    def table(self, *path: str) -> "Table | None":
        """The table at a path."""
        found = self.entry(*path)
        return found.value if found is not None and isinstance(found.value, Table) else None

    def text(self, *path: str) -> str | None:
        """The text at a path; None if there is none."""
        found = self.entry(*path)
        return found.value.text if found is not None and isinstance(found.value, Leaf) else None

    @property
    def last(self) -> tuple[Entry, ...]:
        """The entries that count."""
        return tuple({one.key: one for one in self.entries}.values())

    @property
    def repeated(self) -> tuple[Entry, ...]:
        """The entries that a later one replaces."""
        counting = {id(one) for one in self.last}
        return tuple(one for one in self.entries if id(one) not in counting)


Tree = Leaf | Items | Table


def read_tree(file: ConfigFile) -> Tree:
    """The file's document; refuses one that is broken, too deep or too large, and names the line."""
    text = file.text
    if text.lstrip()[:1] in {"{", "["}:
        _check_json(file)
        # YAML, of which JSON is a part, knows no tabs between values; texts of JSON hold none.
        text = text.replace("\t", " ")
    try:
        _check_bounds(file, text)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        # A word of the file may be a part of a password.
        problem = _QUOTED.sub("", error.problem or error.context or "")
        raise file.at(line).wrong(f"this is not YAML: {problem}; correct the line") from None
    except (yaml.YAMLError, ValueError):
        raise BadInput(f"{file.name} is not YAML: it holds a character that none has; remove it") from None
    return Leaf(1, None) if node is None else _Built(file).of(node)


def leaves(tree: Tree, path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Every text with its path, such as `contact.host.email`; entries of a list share the path of the list."""
    match tree:
        case Leaf():
            yield path, tree
        case Items():
            for one in tree.items:
                yield from leaves(one, path)
        case Table():
            for entry in tree.last:
                yield from leaves(entry.value, f"{path}.{entry.key}" if path else entry.key)


def texts(tree: Tree | None) -> list[str]:
    """The texts of a list, or a single one."""
    return [leaf.text for _, leaf in leaves(tree) if leaf.text is not None] if tree is not None else []


class _Built:
    """Nodes of YAML as values, with bounds: an alias counts as often as it is used, and may name what holds it."""

    def __init__(self, file: ConfigFile) -> None:
        self._file, self._count = file, 0

    def of(self, node: yaml.Node, depth: int = 0) -> Tree:
        self._count += 1
        if depth > DEEPEST:
            raise BadInput(f"{self._file.name} {TOO_DEEP}")
        line = node.start_mark.line + 1
        if self._count > MOST_VALUES:
            raise self._file.at(line).wrong(TOO_MANY)
        if isinstance(node, yaml.ScalarNode):
            return Leaf(line, None if node.tag == NULL else _clean(node.value))
        if isinstance(node, yaml.SequenceNode):
            return Items(line, tuple(self.of(one, depth + 1) for one in node.value))
        return Table(line, tuple(self._entries(node, depth + 1)))

    def _entries(self, node: yaml.MappingNode, depth: int) -> Iterator[Entry]:
        """The entries; those that `<<` merges come first, as the table's own ones count before them."""
        own = [Entry(key.start_mark.line + 1, _key(key), self.of(value, depth)) for key, value in node.value]
        keys = {one.key for one in own}
        for merged in [one for one in own if one.key == "<<"]:
            tables = merged.value.items if isinstance(merged.value, Items) else (merged.value,)
            for table in [one for one in tables if isinstance(one, Table)]:
                yield from (one for one in table.entries if one.key not in keys)
        yield from (one for one in own if one.key != "<<")


def _check_json(file: ConfigFile) -> None:
    try:
        json.loads(file.text)
    except json.JSONDecodeError as error:
        raise file.at(error.lineno).wrong(f"this is not JSON: {error.msg}; correct the line") from None
    except RecursionError:
        raise BadInput(f"{file.name} {TOO_DEEP}") from None
    except ValueError:
        raise BadInput(f"{file.name} holds a number of too many digits; write a shorter one") from None


def _check_bounds(file: ConfigFile, text: str) -> None:
    """Depth and number of values before any is built: the composer of PyYAML calls itself for each level."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise BadInput(f"{file.name} {TOO_DEEP}")
        if count > MOST_EVENTS:
            raise file.at(event.start_mark.line + 1).wrong(
                f"there are more than {MOST_VALUES} values; name a smaller file"
            )


def _key(node: yaml.Node) -> str:
    return _clean(node.value) if isinstance(node, yaml.ScalarNode) else "(a key that is no text)"


def _clean(text: str) -> str:
    """The text without halves of characters, which JSON can write and no file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


NULL = "tag:yaml.org,2002:null"
DEEPEST = 32
MOST_VALUES = 20_000
MOST_EVENTS = 2 * MOST_VALUES
TOO_DEEP = f"has values nested in more than {DEEPEST} levels; name a configuration of wis2box or wis2downloader"
TOO_MANY = f"there are more than {MOST_VALUES} values; name a smaller file"
_QUOTED = re.compile(r" '(?!<)[^']{2,}'")
