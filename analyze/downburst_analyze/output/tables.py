"""The study as readable tables."""

from rich.console import Console
from rich.table import Table

from downburst_analyze.output.advice import advice_tables
from downburst_analyze.output.wording import plain, volume
from downburst_analyze.sessions import SessionFigures, Suitability
from downburst_analyze.study import ProductStudy, ReportedFeed
from downburst_scheduler.figures.wording import duration, megabits
from downburst_scheduler.models.candidates import Comparison, Situation
from downburst_scheduler.models.grouping import Partition


def print_products(console: Console, study: ProductStudy, situation: Situation) -> None:
    """Traffic, transports, circuits and groups, and the choice in one sentence at the end."""
    parts = [_traffic(study), _silences(study), _candidates(study.comparison), _circuits(study)]
    if study.advice is not None:
        parts += advice_tables(study.advice)
    if study.groups is not None:
        parts.append(_groups(study.groups))
    for table in parts:
        console.print(table)
        console.print()
    modelled = study.modelled_products
    if modelled < study.traffic.products:
        console.print(f"Latencies are of the first {modelled} products.", soft_wrap=True)
    console.print(_under(situation), soft_wrap=True, markup=False)
    if study.advice is not None:
        console.print(f"Circuit: {study.advice.sentence}.", soft_wrap=True, markup=False)
    console.print(study.comparison.sentence, soft_wrap=True, markup=False)


def print_transfers(console: Console, figures: SessionFigures) -> None:
    """Sessions of transfers, and their suitability for a circuit."""
    table = plain("sessions", "")
    table.add_row("transfers, peers, sessions", f"{figures.transfers}, {figures.peers}, {figures.sessions}")
    table.add_row("sessions of at least 100 MB", str(figures.counted_sessions))
    rates = ", ".join(f"{name} {megabits(value)}" for name, value in figures.throughput_quantiles_bps.items())
    table.add_row("throughput of a transfer", rates)
    for name, session in (("longest", figures.longest), ("largest", figures.largest)):
        if session is not None:
            length = duration(session.length_s * 1e3)
            table.add_row(name, f"{volume(session.size_bytes)} in {length}, {session.transfers} transfers")
    console.print(table)
    console.print()
    console.print(_suited(figures.suitability))


def print_reports(console: Console, feeds: tuple[ReportedFeed, ...]) -> None:
    """Latencies by feed as hosts reported them."""
    names = list(feeds[0].latency_quantiles_s) if feeds else []
    table = plain("feed", "hosts", "lines", *names, "clock errors", "products", "volume")
    for one in feeds:
        latencies = (duration(value * 1e3) for value in one.latency_quantiles_s.values())
        counts = (str(one.hosts), str(one.lines))
        table.add_row(one.feed, *counts, *latencies, str(one.negative), str(one.products), volume(one.bytes))
    console.print(table)


def _traffic(study: ProductStudy) -> Table:
    seen = study.traffic
    table = plain("traffic", "")
    table.add_row("products, volume, span", f"{seen.products}, {volume(seen.bytes)}, {seen.span_s:.0f} s")
    worst = f", worst hour {seen.worst_hour_over_mean:.2g} times that" if seen.worst_hour_over_mean else ""
    table.add_row("mean rate", megabits(seen.mean_bps) + worst)
    for width, bins in seen.widths.items():
        peak = f"peak {megabits(bins.peak_bps)}, {bins.peak_to_mean:.2g} times the mean; {bins.empty_share:.0%} empty"
        table.add_row(f"in bins of {width} s", f"{peak}; dispersion {bins.dispersion_of_products:.3g}")
    if seen.hurst is not None:
        table.add_row("memory (Hurst)", f"{seen.hurst:.2f}; 0.5 is none")
    sizes = ", ".join(f"{name} {volume(value)}" for name, value in seen.sizes.quantiles_bytes.items())
    table.add_row("product size", f"{sizes}, mean {volume(seen.sizes.mean_bytes)}")
    table.add_row("bytes in the largest 1 %", f"{seen.sizes.share_of_bytes_in_top_1_percent:.0%}")
    bursts = seen.bursts
    burst = f"{bursts.bursts}, of {bursts.mean_products:.3g} products and {bursts.mean_length_s:.2g} s on average"
    table.add_row(f"bursts (split at {bursts.split_s:g} s)", f"{burst}, largest {volume(bursts.largest_bytes)}")
    return table


def _silences(study: ProductStudy) -> Table:
    table = plain("silence longer than", "gaps", "share of gaps", "share of time")
    for one in study.traffic.silence:
        table.add_row(
            f"{one.longer_than_s:g} s", str(one.gaps), f"{one.share_of_gaps:.2%}", f"{one.share_of_time:.1%}"
        )
    return table


def _candidates(comparison: Comparison) -> Table:
    table = plain("transport", "p50", "p99", "max", "mean egress", "busiest minute")
    for one in comparison.candidates:
        if one.outcome is None:
            continue
        seen = one.outcome
        latencies = (duration(one.quantile_ms(at)) for at in (0.5, 0.99, 1.0))
        name = one.transport if one.feasible else f"({one.transport})"
        table.add_row(name, *latencies, megabits(seen.egress_bps), megabits(seen.peak_egress_bps))
    return table


def _circuits(study: ProductStudy) -> Table:
    table = plain("circuits", "")
    for one in study.releases:
        text = f"{one.releases} releases, {one.share_of_time:.1%} of the time given back"
        table.add_row(f"dynamic, held for {one.hold_s:g} s", text)
    for suited in study.suitability:
        text = f"{suited.sessions} of {study.sessions} sessions over {volume(suited.threshold_bytes)}"
        table.add_row(f"worth a set-up of {suited.setup_delay_s:g} s", text)
    if study.sizing is not None:
        size = study.sizing.size
        sure = f"{megabits(study.sizing.low_bps)} to {megabits(study.sizing.high_bps)} in 9 of 10 resampled windows"
        table.add_row("least static rate", f"{megabits(size.rate_bps)} ({sure}), {size.utilisation:.0%} used")
        tried = f"{megabits(study.sizing.trained_bps)}, with which {study.sizing.validated_share:.1%}"
        table.add_row("of the first half", f"{tried} of the second half are in time")
    return table


def _suited(found: tuple[Suitability, ...]) -> Table:
    table = plain("set-up", "least session", "sessions", "share of sessions", "of transfers", "of bytes")
    for one in found:
        shares = (f"{share:.1%}" for share in (one.share_of_sessions, one.share_of_transfers, one.share_of_bytes))
        table.add_row(f"{one.setup_delay_s:g} s", volume(one.threshold_bytes), str(one.sessions), *shares)
    return table


def _groups(found: Partition) -> Table:
    table = plain("groups by rate", "sites", "rate", "mean product")
    for number, group in enumerate(found.groups[:SHOWN_GROUPS], start=1):
        name = f"group {number}" if len(group.sites) > 1 else f"{group.sites[0]} alone"
        table.add_row(name, str(len(group.sites)), megabits(group.rate_bps), duration(group.latency_s * 1e3))
    if len(found.groups) > SHOWN_GROUPS:
        table.add_row(f"and {len(found.groups) - SHOWN_GROUPS} more", "", "", "")
    reasons = [*found.alone.values(), *found.put_out.values()]
    for reason in reasons[:SHOWN_GROUPS]:
        table.add_row(reason, "", "", "")
    if len(reasons) > SHOWN_GROUPS:
        table.add_row(f"and {len(reasons) - SHOWN_GROUPS} more", "", "", "")
    return table


def _under(situation: Situation) -> str:
    objective = situation.objective
    sites = "1 site" if len(situation.sites) == 1 else f"{len(situation.sites)} sites"
    wanted = f"p{100 * objective.share:g} within {objective.latency_s:g} s"
    return f"For {sites}, {megabits(situation.egress_bps)} of egress and {wanted}:"


SHOWN_GROUPS = 12
