"""`downburst generate PROFILE`: a synthetic trace with a real feed's statistics, for `analyze` and load tests."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from downburst.foundation.errors import BadInput, DownburstError
from downburst_app.cli.numbers import A_YEAR_HOURS, real_number

if TYPE_CHECKING:
    from downburst_app.play.generator import GeneratedFeed

PROFILES = ("ngrid", "conduit", "nexrad2", "text", "warnings", "satellite", "objects", "notifications")
"""Names of `profiles()`, which loads numpy."""


def generate(
    profile: Annotated[str, typer.Argument(help=f"One of {', '.join(PROFILES)}.")],
    *,
    hours: Annotated[float, real_number(least=0.001, most=A_YEAR_HOURS, help="Length of the trace in hours.")] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same trace.")] = 1,
    out: Annotated[Path | None, typer.Option(help="File to write; standard output by default.")] = None,
) -> None:
    """Write a trace, one product per line: size in bytes and time on 1 January 2024, UTC.

    Example: downburst generate conduit --hours 24 --out conduit.txt
    """
    try:
        feed = _profile(profile)
        if out is None:
            _write(sys.stdout, feed, hours=hours, seed=seed)
            return
        with _opened(out) as file:
            _write(file, feed, hours=hours, seed=seed)
    except DownburstError as error:
        typer.echo(error.sentence, err=True)
        raise typer.Exit(error.exit_code) from None


def _profile(name: str) -> "GeneratedFeed":
    from downburst_app.play.profiles import profiles

    found = profiles().get(name)
    if found is None:
        raise BadInput(f"{name!r} is not a profile; choose one of {', '.join(profiles())}")
    return found


def _opened(path: Path) -> IO[str]:
    try:
        return path.open("w", encoding="ascii")
    except OSError as error:
        raise BadInput(f"{path} can't be written ({error.strerror}); name another file with --out") from error


def _write(file: IO[str], feed: "GeneratedFeed", *, hours: float, seed: int) -> None:
    from downburst_app.play.generator import until

    for product in until(feed.products(seed=seed), seconds=3600 * hours):
        moment = BEGIN + timedelta(seconds=product.at_s)
        file.write(f"{product.size_bytes} {moment:%Y%m%d%H%M%S}.{moment.microsecond // 1000:03d}\n")


BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
