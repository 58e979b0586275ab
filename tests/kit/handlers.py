"""The handlers of the product, as its code names them: first arguments of the calls of `downburst.supervision`."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (
    "core/downburst",
    "app/downburst_app",
    "analyze/downburst_analyze",
    "api/downburst_api",
    "client/downburst_client",
    "contract/downburst_contract",
    "scheduler/downburst_scheduler",
    "services/downburst_alarms",
    "services/downburst_bridges",
    "services/downburst_circuits",
    "services/downburst_ingest",
    "services/downburst_latency",
    "services/downburst_probes",
    "services/downburst_measurements",
    "workers/downburst_worker",
)


@dataclass(frozen=True)
class Call:
    """A call of a function or method of some name."""

    file: str
    line: int
    name: str
    first: str | None
    """Its first argument, if that is a text."""


def calls_in(tree: ast.AST, file: str) -> Iterator[Call]:
    """Every call, and every function that is passed by name, as with `partial`."""
    constants = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple) and node.value.elts:
            # Parts of a hub, which are kept by the names that come with them.
            yield Call(file, node.lineno, "keep", _text(node.value.elts[0], constants))
        if not isinstance(node, ast.Call):
            continue
        function, arguments = node.func, node.args
        if _name(function) == "partial" and arguments:
            function, arguments = arguments[0], arguments[1:]
        yield Call(file, node.lineno, _name(function), _text(arguments[0], constants) if arguments else None)


@cache
def calls(package: str) -> tuple[Call, ...]:
    """Every call in a package."""
    found: list[Call] = []
    for path in sorted((ROOT / package).rglob("*.py")):
        found.extend(calls_in(ast.parse(path.read_text(encoding="utf-8")), str(path.relative_to(ROOT))))
    return tuple(found)


def packages() -> Iterator[Call]:
    """Every call in the product."""
    for package in PRODUCT:
        yield from calls(package)


def _handlers() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one in packages():
        if one.name in ENTER and one.first is not None and "." in one.first:
            found.setdefault(one.first, set()).add(one.name)
    return {name: frozenset(ways) for name, ways in sorted(found.items())}


def _name(function: ast.AST) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _text(argument: ast.AST, constants: dict[str, str]) -> str | None:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    return constants.get(argument.id) if isinstance(argument, ast.Name) else None


ENTER = frozenset({"attempt", "attempt_now", "keep", "call", "start", "start_thread", "caught"})
HANDLERS = _handlers()
"""By name the ways in which it is entered."""
