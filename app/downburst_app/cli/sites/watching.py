"""`downburst watch`: products as they arrive, in the line format of `ldmadmin watch`."""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst_worker.binary import find_node


def watch(
    *,
    feed: Annotated[
        list[str] | None, typer.Option("--feed", "-f", help="Only this feed; several if repeated.")
    ] = None,
    pattern: Annotated[str, typer.Option("--pattern", "-p", help="Ids that match this regular expression.")] = ".*",
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Number of products to start with.")] = 0,
    count: Annotated[int | None, typer.Option("--count", "-c", min=1, help="End after this many products.")] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Data directory of a hub or site.")] = None,
    settings: Annotated[Path | None, typer.Option("--settings", help="Settings file (TOML).")] = None,
) -> None:
    """Show products as they are stored, until interrupted: time, size, creation time, feed, number, id.

    The lines are those of LDM's `ldmadmin watch`. It reads the log on this machine, beside a running hub or site.

    Example: downburst watch -f NGRID -p '^Y.*KWBH'
    """
    from downburst.settings.hub import load_settings

    chosen = load_settings(settings, data_dir=data_dir)
    wanted = _pattern(pattern)
    argv = [str(find_node(chosen.node)), "log", "tail", f"--lines={lines}", "--follow", "--", str(chosen.data_dir)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, errors="replace")
    try:
        for shown, line in enumerate(watched(process.stdout or (), feeds=feed, pattern=wanted), 1):
            print(line, flush=True)
            if shown == count:
                return
        if process.wait():
            raise typer.Exit(process.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        process.terminate()
        process.wait()


def watched(lines: Iterable[str], *, feeds: list[str] | None, pattern: "re.Pattern[str]") -> Iterator[str]:
    """Lines of the log's tail in LDM's format, for the requested feeds and ids."""
    for line in lines:
        parts = line.rstrip("\n").split(maxsplit=5)
        if len(parts) < PARTS:
            continue
        time, size, created, feed, number, product = parts
        if (not feeds or feed in feeds) and pattern.search(product):
            # Widths as in LDM's own format, %8u %s %7s %09u.
            yield f"{time} watch INFO  {int(size):8} {created} {feed:>7} {int(number):09}  {product}"


def _pattern(text: str) -> "re.Pattern[str]":
    try:
        return re.compile(text)
    except re.error as error:
        raise BadInput(f"the pattern {text!r} can't be read: {error}; correct it") from None


PARTS = 6
