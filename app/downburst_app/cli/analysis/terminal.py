"""The terminal of `downburst analyze`: its progress line and its width."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Share = Callable[[float], None]
"""Called with the share of the work that is done."""
Step = Callable[[str], None]
"""Called with the name of the work that begins."""


@contextmanager
def progress() -> Iterator[tuple[Share, Step]]:
    """A progress line on standard error; none if that is no terminal."""
    console = Console(stderr=True)
    shown = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    ]
    with Progress(*shown, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("opening", total=1.0)
        yield (lambda share: bar.update(task, completed=share)), (lambda what: bar.update(task, description=what))


def console_of_output() -> Console:
    """As wide as the terminal; a file or a pipe gets whole lines."""
    return Console(highlight=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_COLUMNS)


FILE_COLUMNS = 140
