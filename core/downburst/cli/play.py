"""`downburst play`: live products after an arrival trace."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from downburst.errors import BadInput
from downburst.names import check_feed_name
from downburst.trace import parse
from downburst_ingest.player import Player, PlaySummary
from downburst_ingest.playing import Planned, at_speed, before, from_trace, with_files


def play(  # noqa: PLR0913
    trace: Annotated[Path, typer.Argument(help="Arrival trace: `size YYYYMMDDhhmmss.mmm` a line, in time order.")],
    *,
    feed: Annotated[str, typer.Option(help="Feed that the products go to.")],
    speed: Annotated[float, typer.Option(min=0.001, help="How many times as fast as the trace.")] = 1.0,
    minutes: Annotated[float | None, typer.Option(min=0, help="Play so many minutes of trace time.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Take the bytes of the files below this directory in turn.")
    ] = None,
    hub: Annotated[str, typer.Option(envvar="DOWNBURST_HUB", help="The hub's address.")] = "http://127.0.0.1:7371",
    concurrency: Annotated[int, typer.Option(min=1, max=512, help="Products sent at once.")] = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Make new, live products after an arrival trace.

    Sizes and times are those of the trace, the creation time is the moment of play, the bytes are random, or those
    of real files with --data. The summary says how late the play ran.

    Example: downburst play traces/ngrid-20150615T00-1h.txt --feed NGRID --minutes 10 --speed 10
    """
    check_feed_name(feed)
    planned = _planned(trace, feed=feed, speed=speed, minutes=minutes, data=data)
    summary = asyncio.run(_play(Player(hub, concurrency=concurrency, patience_s=PATIENCE_S), planned))
    print(json.dumps(as_figures(summary)) if as_json else in_words(summary))


def as_figures(summary: PlaySummary) -> dict[str, object]:
    """The summary for machines."""
    return {**asdict(summary), "rate_bps": summary.rate_bps}


def in_words(summary: PlaySummary) -> str:
    """The summary in one line."""
    return (
        f"{summary.products} products, {summary.bytes / 1e6:.1f} MB in {summary.wall_s:.1f} s "
        f"({summary.rate_bps / 1e6:.1f} Mb/s); late by {summary.slip_p50_s:.3f} s (median), "
        f"{summary.slip_p99_s:.3f} s (p99), {summary.slip_max_s:.3f} s (worst); "
        f"{summary.duplicates} duplicates, {summary.retries} sent again"
    )


def _planned(trace: Path, *, feed: str, speed: float, minutes: float | None, data: Path | None) -> Iterator[Planned]:
    planned = from_trace(parse(trace), feed=feed, label=trace.stem, play=time.time_ns() // 1000)
    if minutes is not None:
        planned = before(planned, seconds=60 * minutes)
    if data is not None:
        if not data.is_dir():
            raise BadInput(f"{data} is no directory; name one that holds the files to send")
        planned = with_files(planned, sorted(path for path in data.rglob("*") if path.is_file()))
    return at_speed(planned, speed=speed)


async def _play(player: Player, planned: Iterator[Planned]) -> PlaySummary:
    telling = asyncio.create_task(_tell(player.summary))
    try:
        return await player.play(planned)
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling


async def _tell(summary: PlaySummary) -> None:
    """A line on standard error: rewritten on a terminal, a fresh one every ten seconds elsewhere."""
    terminal = sys.stderr.isatty()
    began_s = time.monotonic()
    try:
        while True:
            await asyncio.sleep(0.5 if terminal else 10.0)
            elapsed_s = time.monotonic() - began_s
            line = f"{elapsed_s:6.1f} s  {summary.products} products, {summary.bytes / 1e6:.1f} MB"
            print(f"\r{line}" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)
    finally:
        if terminal:
            print(file=sys.stderr)


PATIENCE_S = 60.0
"""How long a hub that is away is asked again: it restarts within seconds."""
