"""`downburst play`: live products after an arrival trace, or after the mix of a busy hub."""

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_feed_name
from downburst.settings.addresses import DEFAULT_HUB, HUB_VARIABLE
from downburst_app.cli.client import HubClient
from downburst_app.cli.numbers import A_YEAR_MINUTES, real_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downburst_app.play.player import Player, PlaySummary
    from downburst_app.play.playing import Planned


class Mix(StrEnum):
    """Feeds of a busy hub, synthesised from published figures."""

    IDD_2024 = "idd-2024"


def play(  # noqa: PLR0913
    trace: Annotated[
        Path | None, typer.Argument(help="Arrival trace: `size YYYYMMDDhhmmss.mmm` a line, in time order.")
    ] = None,
    *,
    feed: Annotated[str | None, typer.Option(help="Feed for the products of a trace.")] = None,
    mix: Annotated[
        Mix | None, typer.Option(help="Instead of a trace: the ten feeds of the IDD's busiest host, 109 products/s.")
    ] = None,
    rate: Annotated[
        float, real_number(least=0.0001, most=1e6, help="Multiplies the mix's products per second.")
    ] = 1.0,
    size: Annotated[
        float, real_number(least=0.0001, most=1e6, help="Multiplies the sizes of the mix's products.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same mix.")] = 1,
    create_feeds: Annotated[bool, typer.Option("--create-feeds", help="Create missing feeds of the mix.")] = False,
    speed: Annotated[float, real_number(least=0.001, most=1e6, help="How many times as fast as the trace.")] = 1.0,
    minutes: Annotated[
        float | None,
        real_number(least=0, most=A_YEAR_MINUTES, help="Minutes of the trace or mix to play (a mix has no end)."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Use the bytes of the files below this directory in turn.")
    ] = None,
    hub: Annotated[str, typer.Option(envvar=HUB_VARIABLE, help="The hub's address.")] = DEFAULT_HUB,
    concurrency: Annotated[int, typer.Option(min=1, max=512, help="Products sent concurrently.")] = 32,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Send new, live products as an arrival trace has them, or the mix of a busy hub.

    Sizes and times are those of the trace or mix, the creation time is the time of the play, the bytes are random, or
    those of real files with --data. The summary reports its delays.

    Example: downburst play traces/ngrid-20150615T00-1h.txt --feed NGRID --minutes 10 --speed 10

    Example: downburst play --mix idd-2024 --rate 0.5 --size 0.05 --minutes 5 --create-feeds
    """
    from downburst_app.play.player import Player
    from downburst_app.play.playing import at_speed, with_files

    match trace, feed, mix:
        case Path(), str(), None if not create_feeds and rate == size == 1:
            check_feed_name(feed)
            planned = at_speed(_traced(trace, feed=feed, minutes=minutes), speed=speed)
        case None, None, Mix() if speed == 1:
            _look_for_feeds(HubClient(hub), create=create_feeds)
            planned = _mixed(seed=seed, rate=rate, size=size, minutes=minutes)
        case _:
            raise BadInput(WAYS)
    if data is not None:
        planned = with_files(planned, _files(data))
    summary = asyncio.run(_play(Player(hub, concurrency=concurrency, patience_s=PATIENCE_S), planned))
    print(json.dumps(as_figures(summary)) if as_json else in_words(summary))


def as_figures(summary: "PlaySummary") -> dict[str, object]:
    """The summary for machines."""
    return {**asdict(summary), "rate_bps": summary.rate_bps}


def in_words(summary: "PlaySummary") -> str:
    """The summary in one line."""
    return (
        f"{summary.products} products, {summary.bytes / 1e6:.1f} MB in {summary.wall_s:.1f} s "
        f"({summary.rate_bps / 1e6:.1f} Mb/s); late by {summary.slip_p50_s:.3f} s (median), "
        f"{summary.slip_p99_s:.3f} s (p99), {summary.slip_max_s:.3f} s (worst); "
        f"{summary.duplicates} duplicates, {summary.retries} sent again"
    )


def _traced(trace: Path, *, feed: str, minutes: float | None) -> "Iterator[Planned]":
    from downburst.recordings.traces import parse
    from downburst_app.play.playing import before, from_trace

    planned = from_trace(parse(trace), feed=feed, label=trace.stem, play=time.time_ns() // 1000)
    return planned if minutes is None else before(planned, seconds=60 * minutes)


def _mixed(*, seed: int, rate: float, size: float, minutes: float | None) -> "Iterator[Planned]":
    from downburst_app.play.idd_mix import idd_mix
    from downburst_app.play.playing import before, from_mix

    planned = from_mix(idd_mix(seed=seed, rate=rate, size=size), play=time.time_ns() // 1000)
    return planned if minutes is None else before(planned, seconds=60 * minutes)


def _look_for_feeds(hub: HubClient, *, create: bool) -> None:
    from downburst_app.play.idd_mix import IDD_2024

    known = {feed["feed"] for feed in hub.ask("GET", "v1", "feeds")}
    missing = [feed for feed in IDD_2024 if feed.name not in known]
    if missing and not create:
        names = ", ".join(feed.name for feed in missing)
        raise BadInput(f"the hub has no feed {names}; add --create-feeds to create the mix's feeds")
    for feed in missing:
        hub.ask("POST", "v1", "feeds", json={"feed": feed.name, "class": feed.feed_class})
        print(f"feed {feed.name} created: {feed.feed_class}", file=sys.stderr)


def _files(data: Path) -> list[Path]:
    if not data.is_dir():
        raise BadInput(f"{data} is not a directory; name one that holds the files to send")
    return sorted(path for path in data.rglob("*") if path.is_file())


async def _play(player: "Player", planned: "Iterator[Planned]") -> "PlaySummary":
    telling = asyncio.create_task(_tell(player.summary))
    try:
        return await player.play(planned)
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling


async def _tell(summary: "PlaySummary") -> None:
    """A line on standard error: rewritten on a terminal, a new one every ten seconds elsewhere."""
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
"""Time for retries to a hub that is away: it restarts within seconds."""
WAYS = (
    "play either a trace (TRACE --feed FEED, with --speed) or a mix (--mix idd-2024, with --rate, "
    "--size, --seed and --create-feeds)"
)
