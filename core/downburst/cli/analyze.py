"""`downburst analyze TRACE`: what the scheduler would do with a recorded feed, and why, without a hub."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from downburst.errors import DownburstError
from downburst.model import Candidate
from downburst.trace import parse
from downburst_scheduler.options import HubInput, SiteInput, megabits
from downburst_scheduler.planner import Decision, Question, Rules, decide
from downburst_scheduler.queueing import Path as NetworkPath
from downburst_scheduler.sentences import duration, reason
from downburst_scheduler.traffic import Arrivals, TrafficStatistics, statistics_of


def analyze(  # noqa: PLR0913 (every option of the command is a parameter)
    trace: Annotated[Path, typer.Argument(help="One product a line: size in bytes, YYYYMMDDhhmmss.mmm in UTC.")],
    *,
    sites: Annotated[int, typer.Option(min=0, max=100_000, help="Sites that take the whole feed.")] = 5,
    rtt_ms: Annotated[float, typer.Option(min=0, max=60_000, help="Round trip to each site, in ms.")] = 20.0,
    capacity_mbps: Annotated[float, typer.Option(min=0.001, help="Egress of the hub, in Mb/s.")] = 1000.0,
    multicast_rate_mbps: Annotated[float, typer.Option(min=0.001, help="Pace of a group, in Mb/s.")] = 400.0,
    objective_ms: Annotated[float, typer.Option(min=0.001, help="Objective for the p99 latency, in ms.")] = 5000.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of tables.")] = False,
) -> None:
    """Shows the burstiness of a trace, what each transport would cost and deliver, and the choice with its reason.

    Example: downburst analyze ngrid-20150615T00-1h.txt --sites 8 --capacity-mbps 1000
    """
    try:
        arrivals = Arrivals.of_trace(parse(trace))
    except DownburstError as error:
        typer.echo(error.sentence, err=True)
        raise typer.Exit(error.exit_code) from None
    question = Question(
        arrivals=arrivals,
        sites=tuple(SiteInput(f"site-{number}", NetworkPath(rtt_ms / 1e3)) for number in range(1, sites + 1)),
        hub=HubInput(egress_bps=capacity_mbps * 1e6, multicast_rate_bps=multicast_rate_mbps * 1e6),
        objective_ms=objective_ms,
        now_s=0.0,
        rules=Rules(agreeing_windows=1, dwell_s=0.0),
    )
    decision = decide(question)
    if as_json:
        typer.echo(json.dumps(_document(trace, question, decision), indent=1))
    else:
        _print(question, decision)


def _document(trace: Path, question: Question, decision: Decision) -> dict[str, Any]:
    return {
        "trace": str(trace),
        "sites": len(question.sites),
        "objective_ms": question.objective_ms,
        "traffic": asdict(statistics_of(question.arrivals)),
        "candidates": [asdict(candidate) for candidate in decision.candidates],
        "transport": decision.transport,
        "reason": reason(question, decision),
    }


def _print(question: Question, decision: Decision) -> None:
    console = Console(highlight=False)
    console.print(_traffic_table(statistics_of(question.arrivals)))
    console.print()
    console.print(_candidate_table(decision.candidates))
    console.print()
    console.print(reason(question, decision), soft_wrap=True, markup=False)


def _traffic_table(traffic: TrafficStatistics) -> Table:
    table = Table("traffic", "", show_edge=False, title_justify="left")
    table.add_row("products, volume, span", f"{traffic.products}, {_volume(traffic.bytes)}, {traffic.span_s:.0f} s")
    table.add_row("mean rate", megabits(traffic.mean_bps))
    for width, seen in traffic.widths.items():
        peak = f"peak {megabits(seen.peak_bps)}, {seen.peak_to_mean:.2g} times the mean"
        table.add_row(f"in bins of {width} s", f"{peak}; dispersion of counts {seen.dispersion:.3g}")
    table.add_row("seconds without a product", f"{traffic.silent_share:.0%}")
    for silence in traffic.silence:
        shares = f"{silence.share_of_gaps:.2%} of the gaps, {silence.share_of_time:.0%} of the time"
        table.add_row(f"silence over {silence.longer_than_s:g} s", shares)
    sizes = ", ".join(f"{name} {_volume(value)}" for name, value in traffic.size_quantiles_bytes.items())
    table.add_row("product size", sizes or "no product")
    return table


def _candidate_table(candidates: tuple[Candidate, ...]) -> Table:
    table = Table("transport", "mean egress", "peak egress", "p50", "p95", "p99", "max", show_edge=False)
    for one in candidates:
        if one.egress_bps is None:
            continue
        rates = [_optional(value, megabits) for value in (one.egress_bps, one.peak_egress_bps)]
        latencies = (one.predicted_p50_ms, one.predicted_p95_ms, one.predicted_p99_ms, one.predicted_max_ms)
        table.add_row(one.transport, *rates, *(_optional(value, duration) for value in latencies))
    return table


def _optional(value: float | None, shown: Callable[[float], str]) -> str:
    return "-" if value is None else shown(value)


def _volume(size_bytes: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes:.0f} B"
