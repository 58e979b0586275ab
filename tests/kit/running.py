"""Processes that a test started. Those that a failed test left are ended, so that no other test meets them."""

import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Process = subprocess.Popen[Any]


def note(process: Process, close: Callable[[], None] | None = None) -> None:
    """Keeps a process that was just started, and what is to be closed once it has ended, beside its pipes."""
    _STARTED.append((process, close))


def end_what_is_left() -> list[str]:
    """Kills what still runs, the latest first, and closes all pipes; returns the command lines of what was killed."""
    killed = []
    while _STARTED:
        process, close = _STARTED.pop()
        if process.poll() is None:
            process.kill()
            killed.append(str(process.args))
        process.wait(timeout=60)
        if close:
            close()
        for pipe in (process.stdin, process.stdout, process.stderr):
            _close(pipe)
    return killed


def _close(pipe: Any) -> None:
    if pipe and not pipe.closed:
        # What the process did not read is of no use any more.
        with suppress(BrokenPipeError):
            pipe.close()


_STARTED: list[tuple[Process, Callable[[], None] | None]] = []
