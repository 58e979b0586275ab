"""`downburst demo`: the whole path on one machine, with real products and a check."""

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downburst.foundation.errors import BadInput
from downburst_app.cli.numbers import A_YEAR_MINUTES, A_YEAR_S, real_number

if TYPE_CHECKING:
    from downburst_app.demo.scene import Scene
    from downburst_app.demo.stage import Options


def demo(  # noqa: PLR0913
    *,
    sites: Annotated[int, typer.Option(min=1, max=64, help="Receiving sites.")] = 5,
    data: Annotated[Path | None, typer.Option(help="Deliver every file below this directory once.")] = None,
    trace: Annotated[Path | None, typer.Option(help="Play products after this arrival trace.")] = None,
    minutes: Annotated[
        float | None, real_number(least=0.01, most=A_YEAR_MINUTES, help="Minutes of the trace's time.")
    ] = None,
    speed: Annotated[float, real_number(least=0.01, most=1e6, help="Speed, as a multiple of the trace's.")] = 1.0,
    seconds: Annotated[
        float | None, real_number(least=1, most=A_YEAR_S, help="Real seconds to play (not with --trace).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random values.")] = 7,
    leave: Annotated[bool, typer.Option("--exit", help="End after the last receipt, with a check.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write the report as JSON to this file.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Keep everything in this directory.")] = None,
    http: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0: a free one.")] = 0,
    concurrency: Annotated[int, typer.Option(min=1, max=512, help="Products sent concurrently.")] = 32,
) -> None:
    """Run a complete demonstration: a hub, its sites, live feeds, and a plan that the scheduler changes by itself.

    Without --data and --trace it plays built-in feeds, until interrupted or, with --exit, for a minute. With --exit
    it exits with 0 only if every site holds every product it subscribed, once, with equal bytes. With --keep DIR,
    DIR/sites/SITE/received holds what each site got and DIR/played.jsonl what was sent, with SHA-256.

    Example: downburst demo --data ../shared/data --exit --report report.json
    """
    from downburst_app.demo.stage import Options, checked_report_path

    scene = _scene(
        sites=sites, data=data, trace=trace, minutes=minutes, speed=speed, seconds=seconds, seed=seed, leave=leave
    )
    options = Options(leave, checked_report_path(report), keep, http_port=http, concurrency=concurrency)
    raise typer.Exit(asyncio.run(_until_told(scene, options)))


def _scene(  # noqa: PLR0913
    *,
    sites: int,
    data: Path | None,
    trace: Path | None,
    minutes: float | None,
    speed: float,
    seconds: float | None,
    seed: int,
    leave: bool,
) -> "Scene":
    from downburst_app.demo.scene import data_scene, generated_scene, trace_scene

    if data is not None and trace is not None:
        raise BadInput("--data and --trace exclude each other; give one of them")
    if trace is None and minutes is not None:
        raise BadInput("--minutes counts the time of a trace; give --trace, or --seconds instead")
    play = time.time_ns() // 1000
    if data is not None:
        return data_scene(data, sites=sites, seconds=seconds or DATA_SECONDS, seed=seed)
    if trace is not None:
        return trace_scene(trace, sites=sites, minutes=minutes, speed=speed, seed=seed, play=play)
    bounded_s = seconds or (GENERATED_SECONDS if leave else None)
    return generated_scene(sites=sites, seconds=bounded_s, speed=speed, seed=seed, play=play)


async def _until_told(scene: "Scene", options: "Options") -> int:
    """Runs the demonstration; Ctrl-C and SIGTERM end it and every process it started."""
    from rich.console import Console

    from downburst_app.demo.stage import demonstrate

    doing = asyncio.create_task(demonstrate(scene, options, Console(width=None if sys.stdout.isatty() else 132)))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, doing.cancel)
    try:
        return await doing
    except asyncio.CancelledError:
        return INTERRUPTED if options.exit else 0


DATA_SECONDS = 45.0
GENERATED_SECONDS = 60.0
INTERRUPTED = 130
