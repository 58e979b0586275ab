"""Every long-lived task and thread of the product begins in `downburst.supervision`: found in the code."""

import ast

import pytest

from kit.handlers import HANDLERS, PRODUCT, ROOT, calls, calls_in, packages

BEGINS_WORK = frozenset(
    {"create_task", "ensure_future", "TaskGroup", "Thread", "Timer", "Process", "call_soon", "call_later", "call_at"}
)
ELSEWHERE = {
    "core/downburst/supervision/tasks.py": "it is the supervision",
    "api/downburst_api/border/connections.py": "timers of single connections, which do nothing but end them",
    "app/downburst_app/cli/ldm/ldm_tools.py": "a command",
    "app/downburst_app/cli/hub/demo.py": "a command: its errors end it, in front of whoever started it",
    "app/downburst_app/cli/feeds/play.py": "a command",
    "app/downburst_app/play/player.py": "runs in the command `play` alone",
}
"""Files that begin work by other means, each with the reason."""


@pytest.mark.parametrize("package", PRODUCT)
def test_no_task_and_no_thread_begins_outside_the_supervision(package: str) -> None:
    found = {
        f"{one.file}:{one.line} {one.name}"
        for one in calls(package)
        if one.name in BEGINS_WORK
        and one.file not in ELSEWHERE
        and not one.file.startswith("app/downburst_app/demo/")
    }
    assert found == set(), "begin it with downburst.supervision.start, keep or start_thread"


def test_exceptions_are_still_exceptions() -> None:
    for file in ELSEWHERE:
        assert any(one.file == file and one.name in BEGINS_WORK for one in packages()), f"{file} needs no exception"


def test_every_handler_has_a_name_of_its_own() -> None:
    assert len(HANDLERS) > 25
    for name in HANDLERS:
        part, _, what = name.partition(".")
        assert part, name
        assert what, name
        assert len(name) < 64, name


def test_a_task_that_is_begun_by_itself_is_found() -> None:
    planted = ast.parse("import asyncio\nasync def f():\n    asyncio.get_running_loop().create_task(g())\n")
    assert "create_task" in {one.name for one in calls_in(planted, "planted.py")}


def test_nothing_unknown_is_swallowed_outside_of_it() -> None:
    """An `except Exception` that does not count the error lets a task fail silently."""
    silent = []
    for path in sorted(p for package in PRODUCT for p in (ROOT / package).rglob("*.py")):
        handlers = (one for one in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        caught = (one for one in handlers if isinstance(one, ast.ExceptHandler) and _catches_all(one))
        silent += [f"{path.relative_to(ROOT)}:{one.lineno}" for one in caught if not _is_heard(one)]
    assert silent == []


def _catches_all(node: ast.ExceptHandler) -> bool:
    names = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
    return any(
        name is None or (isinstance(name, ast.Name) and name.id in ("Exception", "BaseException")) for name in names
    )


def _is_heard(node: ast.ExceptHandler) -> bool:
    inner = list(ast.walk(node))
    raises = any(isinstance(one, ast.Raise) for one in inner)
    counted = any(isinstance(one, ast.Attribute) and one.attr == "caught" for one in inner)
    named = any(isinstance(one, ast.Call) and "why" in ast.unparse(one.func) for one in inner)
    return raises or counted or named
