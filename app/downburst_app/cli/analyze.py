"""`downburst analyze FILE`: the burstiness of a recorded feed and each transport's performance, without a hub."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from downburst.domain.tcp.rates import CongestionControl
from downburst.foundation.errors import BadInput, DownburstError
from downburst.recordings.recording import Kind, Recording, recording
from downburst_analyze import quantities
from downburst_analyze.counters import counters
from downburst_analyze.output.document import product_document, report_document, transfer_document
from downburst_analyze.output.page import page
from downburst_analyze.output.tables import print_products, print_reports, print_transfers
from downburst_analyze.output.variance import print_variance
from downburst_analyze.sessions import SessionStudy
from downburst_analyze.study import study_products, study_reports
from downburst_analyze.variance import VarianceStudy
from downburst_scheduler.models.candidates import CircuitOffers, Situation
from downburst_scheduler.models.floors import Floor
from downburst_scheduler.models.queues import Order
from downburst_scheduler.models.rates import PathFacts
from downburst_scheduler.models.repair import Repair

Processing = Annotated[
    str, typer.Option(help="Processing time of hub and sites in each latency; `plans show` has a hub's: 70ms.")
]
Congestion = Annotated[CongestionControl, typer.Option(help="Congestion control of the hub's connections.")]
ServingOrder = Annotated[
    Order, typer.Option(help="Order in which unicast serves products; this hub uses the order of arrival.")
]
Offers = Annotated[str, typer.Option(help="Circuits on offer: none, point-to-point, multipoint, both.")]
CountersFile = Annotated[
    Path | None, typer.Option("--counters", help="CSV of a host's counters, beside a log of transfers.")
]


def analyze(  # noqa: PLR0913 (every option of the command is a parameter)
    file: Annotated[Path, typer.Argument(help="Trace, CSV or rtstats lines, plain or packed by gzip.")],
    *,
    sites: Annotated[int, typer.Option(min=1, max=100_000, help="Sites that take the feed.")] = 5,
    egress: Annotated[str, typer.Option(help="Egress capacity of the hub: 1G, 100M.")] = "1G",
    objective: Annotated[str, typer.Option(help="Objective: a percentile and its maximum latency.")] = "p99=5s",
    rtt: Annotated[str, typer.Option(help="Round trip to the sites.")] = "20ms",
    floor: Processing = "0",
    loss: Annotated[str, typer.Option(help="Packet loss on the path to the sites: 0.5%.")] = "0",
    access: Annotated[str, typer.Option(help="Rate of the sites' lines: 100M, or 10M*3,100M*20.")] = "",
    congestion: Congestion = CongestionControl.CUBIC,
    connections: Annotated[int, typer.Option(min=1, max=64, help="Connections per site.")] = 1,
    order: ServingOrder = Order.FIRST_COME,
    multicast: Annotated[bool, typer.Option(help="Whether the network supports multicast.")] = True,
    multicast_rate: Annotated[str, typer.Option(help="The fastest pace of a group.")] = "400M",
    repair: Annotated[Repair, typer.Option(help="How a group's losses are repaired.")] = Repair.CODED,
    circuits: Offers = "none",
    setup_delay: Annotated[str, typer.Option(help="Set-up time of a circuit.")] = "60s",
    hold: Annotated[str, typer.Option(help="Silence after which a dynamic circuit is given back.")] = "60s",
    gap: Annotated[str, typer.Option(help="Longest silence inside a session.")] = "60s",
    counters_file: CountersFile = None,
    sort: Annotated[bool, typer.Option("--sort", help="Sort the file by time first.")] = False,
    columns: Annotated[str, typer.Option(help="Columns of a CSV file without a header: size,time_ms.")] = "",
    html: Annotated[Path | None, typer.Option(help="Write a page with plots to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Shows how bursty a recorded feed is, what each transport would cost and deliver, and the choice with a reason.

    FILE is a trace (`size_bytes YYYYMMDDhhmmss.mmm` a line), CSV with columns for size and time, a CSV log of
    transfers (start, duration_s, size_bytes, peer) for sessions, or rtstats lines for latencies.

    Example: downburst analyze ngrid-20150615T00-1h.txt --sites 8

    For a log of transfers it also reports the factors of their throughput, each with its share of the variance.
    `--counters` adds factors (time, then columns of numbers; net_... are of the network).

    Example: downburst analyze gridftp.csv --counters host.csv

    Example: downburst analyze conduit.csv.gz --sites 104 --circuits both --no-multicast --html report.html
    """
    try:
        round_trip_s, lost = quantities.duration_s(rtt), quantities.share(loss)
        path = PathFacts(round_trip_s, lost, congestion=congestion, connections=connections)
        situation = Situation(
            sites=_sites(sites, access, path),
            egress_bps=quantities.rate_bps(egress),
            multicast=multicast,
            multicast_rate_bps=quantities.rate_bps(multicast_rate),
            repair=repair,
            order=order,
            circuits=_offers(circuits, setup_delay, hold),
            objective=quantities.objective(objective),
            floor=Floor.stated(quantities.duration_s(floor) * 1e3),
        )
        options = _Options(quantities.duration_s(gap), counters_file, html, sort=sort, as_json=as_json)
        _View(file, situation, options).show(columns or None)
    except DownburstError as error:
        typer.echo(error.sentence, err=True)
        raise typer.Exit(error.exit_code) from None


@dataclass(frozen=True, slots=True)
class _Options:
    """Options besides the situation."""

    gap_s: float
    counters: Path | None
    html: Path | None
    sort: bool
    as_json: bool


class _View:
    """Studies a recording by its kind and returns the view of the result."""

    def __init__(self, file: Path, situation: Situation, options: _Options) -> None:
        self._file = file
        self._situation = situation
        self._options = options

    def show(self, columns: str | None) -> None:
        """Reads the recording with a progress bar, then shows the result."""
        with _progress() as (share, step), recording(self._file, columns=columns, progress=share) as found:
            shown = self._of(found, step)
        shown()

    def _of(self, found: Recording, step: Callable[[str], None]) -> Callable[[], None]:
        """The study of a recording, ready to be shown after the progress bar is removed."""
        self._refuse_what_has_no_use(found.kind)
        if found.kind is Kind.TRANSFERS:
            return self._transfers(found)
        if found.kind is Kind.REPORTS:
            reported = study_reports(found.reports())
            return self._shown(report_document(self._file, reported), lambda: print_reports(_console(), reported))
        pieces = found.products(sort=self._options.sort)
        studied = study_products(pieces, self._situation, name=self._file.name, gap_s=self._options.gap_s, step=step)
        if self._options.html is not None:
            step("drawing")
            _write(self._options.html, page(self._file.name, studied, self._situation))
        document = product_document(self._file, studied, self._situation)
        return self._shown(document, lambda: print_products(_console(), studied, self._situation))

    def _refuse_what_has_no_use(self, kind: Kind) -> None:
        if self._options.html is not None and kind in (Kind.TRANSFERS, Kind.REPORTS):
            raise BadInput(f"{self._file.name} holds {kind} and --html draws products; leave it out, or use --json")
        if self._options.counters is not None and kind is not Kind.TRANSFERS:
            raise BadInput(f"{self._file.name} holds {kind} and --counters belong to transfers; leave them out")

    def _transfers(self, found: Recording) -> Callable[[], None]:
        seen, varying = SessionStudy(gap_s=self._options.gap_s), VarianceStudy()
        beside = counters(self._options.counters) if self._options.counters else None
        transfers = varying.passing(found.transfers())
        seen.take(sorted(transfers, key=lambda one: one.start_us) if self._options.sort else transfers)
        figures = seen.figures(sorted({self._situation.circuits.setup_s, 60.0, 1.0, 0.05}, reverse=True))
        if figures.transfers == 0:
            raise BadInput(f"{self._file.name}, line 1: the log has no transfers; give one with at least one", line=1)
        depends = varying.figures(beside)

        def tables() -> None:
            print_transfers(_console(), figures)
            if depends is not None:
                print_variance(_console(), depends)

        return self._shown(transfer_document(self._file, figures, depends), tables)

    def _shown(self, document: dict[str, Any], tables: Callable[[], None]) -> Callable[[], None]:
        return (lambda: typer.echo(json.dumps(document, indent=1))) if self._options.as_json else tables


def _offers(circuits: str, setup_delay: str, hold: str) -> CircuitOffers:
    if circuits not in OFFERS:
        raise BadInput(f"{circuits!r} is not an offer of circuits; write one of {', '.join(OFFERS)}")
    point_to_point, multipoint = OFFERS[circuits]
    return CircuitOffers(point_to_point, multipoint, quantities.duration_s(setup_delay), quantities.duration_s(hold))


def _sites(count: int, access: str, path: PathFacts) -> list[PathFacts]:
    rates = quantities.rates_of_sites(access, count) if access else [None] * count
    return [replace(path, access_bps=rate) for rate in rates]


@contextmanager
def _progress() -> Iterator[tuple[Callable[[float], None], Callable[[str], None]]]:
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


def _console() -> Console:
    """As wide as the terminal; a file or a pipe gets whole lines."""
    return Console(highlight=False, width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else FILE_COLUMNS)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} can't be written ({error.strerror}); name another file with --html") from error


FILE_COLUMNS = 140
OFFERS = {
    "none": (False, False),
    "point-to-point": (True, False),
    "multipoint": (False, True),
    "both": (True, True),
}
