"""`downburst tracer`: what limits the connections to a site, from samples of their TCP variables."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from downburst.foundation.clock import from_us
from downburst.foundation.errors import NotWritable
from downburst.foundation.moments import moment
from downburst.settings.hub import DEFAULT_HUB
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show

COUNTERS = (
    *("total_retrans", "bytes_acked", "bytes_sent", "bytes_retrans"),
    *("busy_time", "rwnd_limited", "sndbuf_limited", "reord_seen"),
)
"""Variables that count from the connection's beginning on."""


def tracer(  # noqa: PLR0913
    site: Annotated[str, typer.Argument(help="Name of the site, for example unl.edu.")],
    *,
    last: Annotated[str, typer.Option(help="The period up to now: 60s, 30m, 2h.")] = "60s",
    variable: Annotated[
        list[str] | None, typer.Option(help="Variable to write; repeat for more; all if left out.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, max=2000, help="Most samples of each connection.")] = 2000,
    deltas: Annotated[bool, typer.Option("--deltas", help="Write what counters grew by, not their values.")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the samples.")] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show what limits the connections to a site: the share of the time for each reason, and stalls.

    Example: downburst tracer unl.edu

    Example: downburst tracer unl.edu --last 10m --json

    Example: downburst tracer unl.edu --variable bytes_acked --variable total_retrans --deltas --csv unl.csv
    """
    params: dict[str, Any] = {"last_s": (A_MOMENT - moment(last, A_MOMENT)).total_seconds(), "points": points}
    found = HubClient(hub).ask("GET", "v1", "sites", site, "tracer", params={**params, "variable": variable or []})
    if csv_file is not None:
        _write_csv(csv_file, found, deltas=deltas)
    if as_json:
        show(found)
        return
    print("\n".join(lines_of(found)))
    if csv_file is not None:
        print(f"the samples are in {csv_file}")


def lines_of(found: dict[str, Any]) -> Iterator[str]:
    """The answer in words."""
    if found["unable"]:
        yield f"note: the hub's node takes no samples: {found['unable']}"
    for connection in found["connections"]:
        yield from _connection(connection)
    if not found["connections"]:
        yield f"no connection of {found['site']} was recorded in this period{_recorded(found)}"
    if not found["complete"]:
        yield "note: the period holds more samples than an answer; ask for less with --last"
    if found["damaged"]:
        yield f"note: {found['damaged']} damaged records were passed over"
    if found["missed_ticks"]:
        yield f"note: {found['missed_ticks']} looks were left out since the node began: its host is busy"


def rows(found: dict[str, Any], *, deltas: bool) -> Iterator[list[Any]]:
    """A row for each sample; with `deltas`, counters are replaced by what they grew since the sample before."""
    yield ["time", "local", "peer", "role", *found["variables"]]
    counts = [deltas and name in COUNTERS for name in found["variables"]]
    for connection in found["connections"]:
        ends = [connection["local"], connection["peer"], connection["role"]]
        samples = connection["samples"]
        # The first sample has none before it.
        befores = samples if deltas else [None, *samples]
        for before, sample in zip(befores, samples[1:] if deltas else samples, strict=False):
            values = [_value(before, sample, column, counts=grows) for column, grows in enumerate(counts, 1)]
            yield [from_us(sample[0]).isoformat(), *ends, *values]


def _value(before: list[int | None] | None, sample: list[int | None], column: int, *, counts: bool) -> int | None:
    value = sample[column]
    then = before[column] if before else None
    return value if not counts or value is None or then is None else value - then


def _connection(connection: dict[str, Any]) -> Iterator[str]:
    yield f"{connection['peer']} ({connection['role']}), from {connection['local']}"
    verdict = connection["verdict"]
    if verdict is None:
        yield "  too few samples to judge"
        return
    yield f"  {verdict['leading']}: {verdict['sentence']}"
    shares = (f"{one['limit']} {one['share']:.0%}" for one in verdict["shares"] if one["share"] >= LEAST_SHOWN)
    yield f"  of {verdict['seconds']:.1f} s: {', '.join(shares)}"
    for stall in connection["stalls"]:
        yield f"  {_stall(stall)}"


def _stall(stall: dict[str, Any]) -> str:
    begun, until = (datetime.fromisoformat(stall[name]) for name in ("begun_at", "until"))
    seconds = (until - begun) / timedelta(seconds=1)
    lasts = "" if stall["ended"] else ", and it may last on"
    waiting = f"{stall['waiting_bytes']} bytes waited"
    return f"stall of {seconds:.1f} s from {begun:%H:%M:%S.%f}: nothing was acknowledged, {waiting}{lasts}"


def _recorded(found: dict[str, Any]) -> str:
    since = found["recorded_since"]
    return "; nothing is recorded yet" if since is None else f"; samples are kept since {since[:19]}"


def _write_csv(file: Path, found: dict[str, Any], *, deltas: bool) -> None:
    try:
        with file.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows(rows(found, deltas=deltas))
    except OSError as error:
        raise NotWritable(f"{file} can't be written: {error.strerror}; name another file with --csv") from error


LEAST_SHOWN = 0.005
A_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
"""Any: a period has the same length before each."""
