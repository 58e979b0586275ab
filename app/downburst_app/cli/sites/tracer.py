"""`downburst tracer`: the limits of the connections to a site, from samples of their TCP variables."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from downburst.foundation.clock import from_us
from downburst.foundation.errors import BadInput, NotWritable
from downburst.foundation.moments import moment
from downburst.settings.addresses import DEFAULT_HUB
from downburst_app.cli import completion
from downburst_app.cli.client import AsJson, HubAddress, HubClient, show

if TYPE_CHECKING:
    from downburst_contract.tracer import TracedSite


def tracer(  # noqa: PLR0913
    site: Annotated[
        str | None, typer.Argument(help="Name of the site, for example unl.edu.", autocompletion=completion.sites)
    ] = None,
    *,
    ring: Annotated[
        Path | None,
        typer.Option("--file", metavar="RING", help="Read this ring of samples, of any tracer, and ask no hub."),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(help="The period up to now: 60s, 30m, 2h. Default: 60s; all of a ring.", show_default=False),
    ] = None,
    variable: Annotated[
        list[str] | None, typer.Option(help="Variable to write; repeat for more; all if left out.")
    ] = None,
    points: Annotated[int, typer.Option(min=2, max=2000, help="Most samples of each connection.")] = 2000,
    deltas: Annotated[bool, typer.Option("--deltas", help="Write the growth of counters, not their values.")] = False,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the samples.")] = None,
    html_file: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page with a plot of each connection.")
    ] = None,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Show the limits of the connections to a site with their share of the time, and stalls.

    Example: downburst tracer unl.edu

    Example: downburst tracer unl.edu --last 10m --html unl.html

    Example: downburst tracer unl.edu --variable bytes_acked --variable total_retrans --deltas --csv unl.csv

    Example: downburst tracer --file tracer.ring --html plots.html
    """
    from downburst_app.cli.sites.time_sequence import NEEDED, page
    from downburst_app.cli.sites.tracer_ring import of_ring
    from downburst_app.cli.sites.tracer_words import lines_of
    from downburst_contract.tracer import TracedSite

    last_s = None if last is None else (A_MOMENT - moment(last, A_MOMENT)).total_seconds()
    # Without names there are all variables.
    wanted = list(dict.fromkeys([*variable, *(NEEDED if html_file else ())])) if variable else []
    if ring is not None:
        answer = of_ring(ring, site, last_s=last_s, points=points, variables=wanted)
    elif site is not None:
        params: dict[str, Any] = {"last_s": LAST_S if last_s is None else last_s, "points": points}
        answer = HubClient(hub).ask("GET", "v1", "sites", site, "tracer", params={**params, "variable": wanted})
    else:
        raise BadInput("no site is named; name one, or a ring of samples with --file")
    found = TracedSite.model_validate(answer)
    if csv_file is not None:
        _write(csv_file, "--csv", _csv_of(found, deltas=deltas))
    if html_file is not None:
        _write(html_file, "--html", page(found))
    if as_json:
        show(answer)
        return
    print("\n".join([*lines_of(found), *_files(csv_file, html_file)]))


def _files(csv_file: Path | None, html_file: Path | None) -> Iterator[str]:
    if csv_file is not None:
        yield f"the samples are in {csv_file}"
    if html_file is not None:
        yield f"the plots are in {html_file}; open it in a browser, or send it by mail"


def rows(found: "TracedSite", *, deltas: bool) -> Iterator[list[Any]]:
    """A row for each sample; with `deltas`, counters are replaced by their growth since the sample before."""
    yield ["time", "local", "peer", "role", *found.variables]
    counts = [deltas and name in found.counters for name in found.variables]
    for connection in found.connections:
        ends = [connection.local, connection.peer, connection.role]
        samples = connection.samples
        # The first sample has none before it.
        befores = samples if deltas else [None, *samples]
        for before, sample in zip(befores, samples[1:] if deltas else samples, strict=False):
            values = [_value(before, sample, column, counts=grows) for column, grows in enumerate(counts, 1)]
            yield [from_us(sample[0] or 0).isoformat(), *ends, *values]


def _value(before: list[int | None] | None, sample: list[int | None], column: int, *, counts: bool) -> int | None:
    value = sample[column]
    then = before[column] if before else None
    return value if not counts or value is None or then is None else value - then


def _csv_of(found: "TracedSite", *, deltas: bool) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows(found, deltas=deltas))
    return out.getvalue()


def _write(file: Path, option: str, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise NotWritable(f"{file} can't be written: {error.strerror}; name another file with {option}") from error


LAST_S = 60.0
A_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
"""Any: a period has the same length before each."""
