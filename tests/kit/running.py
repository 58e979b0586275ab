"""Processes that a test started. Those that a failed test left are ended, so that no other test meets them."""

import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Process = subprocess.Popen[Any]


def note(process: Process, close: Callable[[], None] | None = None) -> None:
    """Registers a started process, and an action that closes more than its pipes after its end."""
    _STARTED.append((process, close))


def end_what_is_left() -> list[str]:
    """Kills the running processes, the latest first, and closes all pipes; returns the killed command lines."""
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
        # Data that the process did not read is of no further use.
        with suppress(BrokenPipeError):
            pipe.close()


_STARTED: list[tuple[Process, Callable[[], None] | None]] = []
