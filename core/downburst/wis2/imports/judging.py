"""Statements by the tables of settings: each is converted, carried or without an equivalent."""

from collections.abc import Iterable

from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.reasons import UNKNOWN, Fate, Ruling, ruling
from downburst.wis2.imports.result import Imported, stated
from downburst.wis2.imports.tree import Items, Leaf, Table, Tree, leaves
from downburst.wis2.imports.variables import Variable, counted, repeated

Rules = dict[str, Ruling]


def judge_variables(made: Imported, variables: list[Variable], rules: Rules) -> None:
    """Lists the variables that are not converted."""
    last = counted(variables)
    for one in repeated(variables):
        made.without(one.spot, stated(one.name, one.written, "="), f"it is given again in {last[one.name].spot}")
    for one in last.values():
        _list(made, one, ruling(one.name, rules) or UNKNOWN)


def judge_tree(made: Imported, file: ConfigFile, tree: Tree, rules: Rules, path: str = "") -> None:
    """Lists the texts of a document that are not converted; a null states nothing."""
    for name, leaf in leaves(tree, path):
        if leaf.text is not None:
            judge(made, file, name, leaf, ruling(name, rules) or UNKNOWN)
    for name, entry in _repeated(tree, path):
        made.without(file.at(entry), name, "the same key stands below it, and counts")


def judge(made: Imported, file: ConfigFile, name: str, leaf: Leaf, rule: Ruling) -> None:
    """Lists a text, unless it is converted."""
    if rule.fate is Fate.CARRIED:
        made.carry(file.at(leaf.line), stated(name, leaf.text), rule.text)
    elif rule.fate is Fate.WITHOUT:
        made.without(file.at(leaf.line), stated(name, leaf.text), rule.text)


def _list(made: Imported, one: Variable, rule: Ruling) -> None:
    line = stated(one.name, one.written, "=")
    if rule.fate is Fate.CARRIED:
        made.carry(one.spot, line, rule.text)
    elif rule.fate is Fate.WITHOUT:
        made.without(one.spot, line, rule.text)


def _repeated(tree: Tree, path: str) -> Iterable[tuple[str, int]]:
    """The keys that stand twice in a table, with the lines of those that do not count."""
    if isinstance(tree, Items):
        for one in tree.items:
            yield from _repeated(one, path)
    elif isinstance(tree, Table):
        for entry in tree.repeated:
            yield f"{path}.{entry.key}" if path else entry.key, entry.line
        for entry in tree.last:
            yield from _repeated(entry.value, f"{path}.{entry.key}" if path else entry.key)
