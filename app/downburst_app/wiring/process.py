"""Common parts of a hub's processes: signals that end them, tasks that end with them, data directories."""

import asyncio
import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from downburst.foundation.errors import AlreadyRunning, NotWritable
from downburst.host.privacy import make_private
from downburst.settings.hub import Settings
from downburst.supervision import hear_the_loop


def stopped_by_signals() -> asyncio.Event:
    """An event, set when the process is asked to end."""
    hear_the_loop()
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


async def cancelled(*tasks: "asyncio.Task[object]") -> None:
    """Cancels tasks and waits until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def make_data_dir(settings: Settings) -> None:
    """Makes the data directory and its subdirectories, private to the hub's user; one sentence if that fails."""
    directory = settings.data_dir
    try:
        for wanted in (directory, settings.node_dir, settings.batch_dir, settings.spool_dir):
            wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(directory, apart=settings.watch.directory)
        probe = directory / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise NotWritable(
            f"the data directory {directory} can't be written ({error.strerror}); "
            "correct its rights, or name another one with --data-dir"
        ) from error


@contextmanager
def lock_data_dir(directory: Path) -> Iterator[IO[str]]:
    """Locks the directory for this process; the system releases the lock however the process ends."""
    with (directory / "hub.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise AlreadyRunning(
                f"another hub (process {file.read().strip() or 'unknown'}) runs on the data directory {directory}; "
                "stop it first, or name another directory with --data-dir"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield file
