"""Sentences of Python: string literals, and the docstrings that `--help` and `/docs` show."""

import ast
from collections.abc import Iterator
from pathlib import Path

from prose.found import HOLE, Sentence, collapsed, is_sentence


def sentences(root: Path, names: list[str]) -> Iterator[Sentence]:
    """Those of all the named files."""
    commands = _lazy_commands(root)
    for name in names:
        yield from _of_file(name, (root / name).read_text(), commands.get(name, frozenset()))


def _of_file(name: str, text: str, commands: frozenset[str]) -> Iterator[Sentence]:
    tree = ast.parse(text)
    area = next((area for start, area in _AREAS if name.startswith(start)), "hub")
    for where, found in _Strings(commands).of(tree):
        sentence = collapsed(found)
        if is_sentence(sentence):
            yield Sentence(where or area, name, sentence)


class _Strings:
    """Walks a module in its order; an area other than the file's is given where the call decides it."""

    def __init__(self, commands: frozenset[str]) -> None:
        self.commands = commands

    def of(self, node: ast.AST, area: str = "") -> Iterator[tuple[str, str]]:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield area, node.value
            return
        if isinstance(node, ast.JoinedStr):
            yield area, "".join(_shown(part) for part in node.values)
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from self.of(part.value, area)
            return
        if isinstance(node, ast.Call):
            called = _name(node.func)
            if called in _NOT_SHOWN or (called in _QUIET and _is_logger(node.func)):
                return
            area = "log" if called in _LOUD and _is_logger(node.func) else area
        for child in self._children(node):
            yield from self.of(child, area)

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        shown = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and self._shows_docstring(node)
        for child in ast.iter_child_nodes(node):
            bare = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(node, ast.AnnAssign) and child is node.annotation and not _is_annotated(child):
                continue
            if bare and not (documented and shown and child is node.body[0]):
                continue
            yield child

    def _shows_docstring(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        decorators = {_name(one.func if isinstance(one, ast.Call) else one) for one in function.decorator_list}
        return bool(decorators & _SHOWING) or function.name in self.commands


def _shown(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else HOLE


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_logger(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and "log" in ast.unparse(function.value).lower()


def _is_annotated(node: ast.AST) -> bool:
    return "Annotated" in ast.unparse(node)


def _lazy_commands(root: Path) -> dict[str, frozenset[str]]:
    """The functions that `COMMANDS` names, which typer decorates when they are called."""
    tree = ast.parse((root / CLI / "__init__.py").read_text())
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMMANDS":
            for value, _ in ast.literal_eval(node.value).values():
                module, _, function = value.partition(":")
                found.setdefault(f"{CLI}/{module.replace('.', '/')}.py", set()).add(function)
    return {name: frozenset(functions) for name, functions in found.items()}


CLI = "app/downburst_app/cli"
_AREAS = (
    (CLI, "command line"),
    ("app/downburst_app/demo", "command line"),
    ("app/downburst_app/drill", "command line"),
    ("api/", "api"),
    ("contract/", "api"),
    ("client/", "api"),
    ("core/downburst/domain/alarms", "alarms"),
    ("core/downburst/settings/alarms", "alarms"),
    ("analyze/", "command line"),
    ("services/downburst_alarms", "alarms"),
    ("scheduler/", "plans"),
)
_LOUD = frozenset({"warning", "error", "exception", "critical"})
_QUIET = frozenset({"debug", "info"})
_NOT_SHOWN = frozenset({"compile", "AssertionError", "strptime", "strftime", "getLogger", "text"})
_SHOWING = frozenset({"command", "callback", "get", "post", "put", "patch", "delete"})
