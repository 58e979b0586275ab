"""A command of the product that meets an unknown error in each handler that a test names, the first time.

`python planted.py COMMAND …` is `downburst COMMAND …`. `PLANTED` names a directory with `COMMAND.json`: the
handlers to throw into immediately, those to throw into once the file `armed` is there, and the tasks that end at
their first step. Handlers that were thrown into, and those that were entered again, are lines of `COMMAND.thrown`
and `COMMAND.again`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any


class Planted(Exception):
    """An error that no handler knows."""


class Plants:
    """The errors to throw in this process, and those already thrown."""

    def __init__(self, directory: Path, command: str) -> None:
        self._place = directory / command
        self._armed = directory / "armed"
        wanted = json.loads(self._place.with_suffix(".json").read_text())
        self._at_once, self._later, self._tasks = (set(wanted[name]) for name in ("at_once", "later", "tasks"))
        self._thrown: set[str] = set()
        self._again: set[str] = set()

    def enter(self, handler: str, work: Callable[[], Any], before: Callable[[str, Callable[[], Any]], Any]) -> Any:
        """Replaces `tasks._enter`."""
        if handler in self._thrown and handler not in self._again:
            self._again.add(handler)
            self._note("again", handler)
        if self._is_due(handler):
            self._throw(handler)
        return before(handler, work)

    def task(self, name: str | None, work: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """The work that a task of that name runs."""
        if name is None or name not in self._tasks or name in self._thrown:
            return work
        work.close()
        return self._thrown_later(name)

    async def _thrown_later(self, name: str) -> None:
        self._throw(name)

    def _is_due(self, handler: str) -> bool:
        if handler in self._thrown:
            return False
        return handler in self._at_once or (handler in self._later and self._armed.exists())

    def _throw(self, handler: str) -> None:
        self._thrown.add(handler)
        self._note("thrown", handler)
        raise Planted(handler)

    def _note(self, kind: str, handler: str) -> None:
        with self._place.with_suffix(f".{kind}").open("a") as notes:
            notes.write(f"{handler}\n")


def _plant(plants: Plants) -> None:
    from downburst.supervision import remote_faults, tasks  # noqa: PLC0415

    enter, create_task = tasks._enter, asyncio.BaseEventLoop.create_task

    def create(loop: Any, work: Any, *, name: str | None = None, context: Any = None) -> Any:
        return create_task(loop, plants.task(name, work), name=name, context=context)

    vars(tasks)["_enter"] = lambda handler, work: plants.enter(handler, work, enter)
    setattr(asyncio.BaseEventLoop, "create_task", create)  # noqa: B010
    tasks.FIRST_WAIT_S = tasks.LONGEST_WAIT_S = 0.05
    remote_faults.AGAIN_S = 0.5


def _run() -> None:
    # A fleet starts its senders as it was started itself.
    if Path(sys.argv[1]).name == "downburst":
        del sys.argv[1]
    # Modules beside this file share their names with others.
    del sys.path[0]
    _plant(Plants(Path(os.environ["PLANTED"]), sys.argv[1]))
    from downburst_app.cli import main  # noqa: PLC0415

    main()


if __name__ == "__main__":
    _run()
