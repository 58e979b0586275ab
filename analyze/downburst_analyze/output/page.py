"""The study as one HTML file with plots; it loads nothing, runs nothing, and can be sent by mail."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from downburst_analyze.advice import Advice
from downburst_analyze.output.advice import TERMS, WORTH, terms_rows, worth_rows
from downburst_analyze.output.plots import Axis, Line, Points, plot
from downburst_analyze.output.wording import volume
from downburst_analyze.study import ProductStudy
from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.figures.traffic import Arrivals
from downburst_scheduler.figures.wording import duration, megabits
from downburst_scheduler.models.candidates import Evaluated, Situation
from downburst_scheduler.models.grouping import Partition


def page(name: str, study: ProductStudy, situation: Situation) -> str:
    """The whole document."""
    figures = (
        _rate(study.arrivals),
        _sizes(study.arrivals),
        _silences(study.arrivals),
        _latencies(study.comparison.candidates, situation),
        _egress(study, situation),
        *_paces(study.groups, situation),
    )
    return whole_page(
        f"{name}: traffic and transports",
        study.comparison.sentence,
        f"{_facts(study, situation)}{_transports(study.comparison.candidates)}{_advice(study.advice)}"
        f"<div class=plots>{''.join(figures)}</div>{_hours(study)}{_groups(study)}",
    )


def whole_page(title: str, sentence: str, body: str) -> str:
    """An HTML file with the sentence at its top."""
    title = escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{title}</h1><p class=reason>{escape(sentence)}</p>{body}</body></html>\n"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; cells are escaped."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _facts(study: ProductStudy, situation: Situation) -> str:
    seen = study.traffic
    rows = [
        ("products", f"{seen.products}"),
        ("volume", f"{volume(seen.bytes)} in {seen.span_s:.0f} s, {megabits(seen.mean_bps)} on average"),
        ("peak over mean", ", ".join(f"{bins.peak_to_mean:.3g} at {width} s" for width, bins in seen.widths.items())),
        ("size", f"median {volume(seen.sizes.quantiles_bytes['p50'])}, mean {volume(seen.sizes.mean_bytes)}"),
        ("sites", f"{len(situation.sites)}, hub's egress {megabits(situation.egress_bps)}"),
        ("objective", f"p{100 * situation.objective.share:g} within {situation.objective.latency_s:g} s"),
    ]
    if study.sizing is not None:
        sure = f"{megabits(study.sizing.low_bps)} to {megabits(study.sizing.high_bps)}"
        rows.append(("least static circuit", f"{megabits(study.sizing.size.rate_bps)} ({sure} in 9 of 10 windows)"))
    return table(("figure", ""), rows)


def _transports(candidates: Sequence[Evaluated]) -> str:
    rows = []
    for one in candidates:
        seen = one.outcome
        late = [duration(one.quantile_ms(at)) for at in (0.5, 0.99)] if seen else ["-", "-"]
        rates = [megabits(seen.egress_bps), megabits(seen.peak_egress_bps)] if seen else ["-", "-"]
        rows.append((one.transport, *late, *rates, ("" if one.feasible else "no: ") + one.reason))
    return table(("transport", "p50", "p99", "mean egress", "busiest minute", "reason"), rows)


def _advice(advice: Advice | None) -> str:
    if advice is None:
        return ""
    tables = table(TERMS, terms_rows(advice)) + table(WORTH, worth_rows(advice))
    return f"<p>Circuit: {escape(advice.sentence)}.</p>{tables}"


def _rate(arrivals: Arrivals) -> str:
    width_s = max(arrivals.span_s / 240, 1.0)
    bins = np.bincount((arrivals.at_s / width_s).astype(np.int64), weights=arrivals.size_bytes)
    points = [((number + 0.5) * width_s / 60, float(value) * 8 / width_s) for number, value in enumerate(bins)]
    return _plotted(
        f"Rate over time, bins of {width_s:.3g} s", [Line("rate", points, filled=True)], "minutes", "bit/s"
    )


def _sizes(arrivals: Arrivals) -> str:
    products, volumes = _above(arrivals.size_bytes)
    lines = [Line("products", products), Line("bytes they hold", volumes)]
    return _plotted("Product sizes: share larger than", lines, "bytes", "share", log_across=True)


def _silences(arrivals: Arrivals) -> str:
    gaps, time = _above(np.diff(arrivals.at_s))
    lines = [Line("gaps", gaps), Line("time they last", time)]
    return _plotted("Silence: share longer than", lines, "seconds", "share", log_across=True)


def _latencies(candidates: Iterable[Evaluated], situation: Situation) -> str:
    lines = []
    for one in candidates:
        if one.outcome is None:
            continue
        shares = np.unique(np.concatenate([np.linspace(0.01, 0.99, 60), 1 - np.geomspace(1e-4, 0.01, 30)]))
        together = one.outcome.latencies.together
        points = [(max(together.quantile(float(share)), 1e-4), float(1 - share)) for share in shares]
        lines.append(
            Line(one.transport + ("" if one.feasible else " (not feasible)"), points, dashed=not one.feasible)
        )
    objective = situation.objective
    wanted = [(objective.latency_s, 1.0), (objective.latency_s, 1 - objective.share)]
    lines.append(Line("objective", wanted, dashed=True))
    return _plotted(
        "Predicted latency: share of deliveries later than", lines, "seconds", "share", log_across=True, log_up=True
    )


def _egress(study: ProductStudy, situation: Situation) -> str:
    fan = study.fan_out
    ends = (fan[0].sites, fan[-1].sites)
    lines = [
        Line("unicast, mean", [(one.sites, one.unicast_bps) for one in fan]),
        Line("unicast, busiest minute", [(one.sites, one.unicast_peak_bps) for one in fan]),
        Line("multicast, mean", [(one.sites, one.multicast_bps) for one in fan]),
        Line("the hub has", [(sites, situation.egress_bps) for sites in ends], dashed=True),
    ]
    return _plotted("Egress over the number of sites", lines, "sites", "bit/s", log_across=True, log_up=True)


def _paces(groups: Partition | None, situation: Situation) -> Iterable[str]:
    """The access rates of sites, and the paces of their groups."""
    if groups is None:
        return
    lines_bps = {f"site-{number}": path.access_bps for number, path in enumerate(situation.sites, start=1)}
    members = [(site, group.rate_bps) for group in groups.groups for site in group.sites]
    paces = [(lines_bps.get(site) or pace_bps, pace_bps) for site, pace_bps in members]
    every = max(len(paces) // DRAWN_SITES, 1)
    numbered = list(enumerate(sorted(paces), start=1))[::every]
    lines = [
        Line("access rate", [(number, line_bps) for number, (line_bps, _) in numbered], dashed=True),
        Line("pace of its group", [(number, pace_bps) for number, (_, pace_bps) in numbered]),
    ]
    yield _plotted("Groups: sites in order of their lines", lines, "sites", "bit/s", log_up=True)


def _hours(study: ProductStudy) -> str:
    rows = [
        (f"{one.hour_utc:02d}", str(one.products), volume(one.bytes), megabits(one.mean_bps))
        for one in study.traffic.by_hour
        if one.seconds >= LEAST_OF_AN_HOUR_S
    ]
    return table(("hour (UTC)", "products", "volume", "mean rate"), rows) if len(rows) > 1 else ""


def _groups(study: ProductStudy) -> str:
    if study.groups is None:
        return ""
    rows = [
        (_named(group.sites), str(len(group.sites)), megabits(group.rate_bps), duration(group.latency_s * 1e3))
        for group in study.groups.groups
    ]
    rows = [*rows[:SHOWN_ROWS], *_more(len(rows))]
    reasons = [(reason, "1", "-", "-") for reason in (*study.groups.alone.values(), *study.groups.put_out.values())]
    return table(
        ("group by rate", "sites", "rate", "mean product takes"), [*rows, *reasons[:SHOWN_ROWS], *_more(len(reasons))]
    )


def _more(count: int) -> list[tuple[str, str, str, str]]:
    return [(f"and {count - SHOWN_ROWS} more", "", "", "")] if count > SHOWN_ROWS else []


def _named(sites: Sequence[str]) -> str:
    return ", ".join(sites[:4]) + (f" and {len(sites) - 4} more" if len(sites) > 4 else "")


def _above(values: Floats) -> tuple[Points, Points]:
    """Shares of the values, and of their sum, that lie above points in even steps of the logarithm."""
    used = np.sort(values[values > 0])
    if len(used) == 0:
        return [], []
    at = np.geomspace(max(used[0], used[-1] / 1e9), used[-1], 120)
    place = np.searchsorted(used, at, side="right")
    sums = np.concatenate([[0.0], np.cumsum(used)])
    counts = [
        (float(x), 1 - float(p) / len(values)) for x, p in zip(at, len(values) - len(used) + place, strict=True)
    ]
    held = [(float(x), 1 - float(sums[p] / sums[-1])) for x, p in zip(at, place, strict=True)]
    return counts, held


def _plotted(
    title: str, lines: Sequence[Line], across: str, up: str, *, log_across: bool = False, log_up: bool = False
) -> str:
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    x_axis = Axis.over(across, xs, logarithmic=log_across, from_zero=not log_across)
    return plot(title, lines, x_axis, Axis.over(up, ys, logarithmic=log_up, from_zero=not log_up))


DRAWN_SITES = 400
LEAST_OF_AN_HOUR_S = 60.0
SHOWN_ROWS = 12
STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.45 system-ui,sans-serif;max-width:1340px;margin:2rem auto;"
    "padding:0 1rem}"
    "h1{font-size:1.3rem}.reason{font-size:1.05rem;border-left:4px solid #2a78c2;padding-left:.8rem}"
    "table{border-collapse:collapse;margin:1.2rem 0}th,td{text-align:left;padding:.2rem .9rem .2rem 0;"
    "border-bottom:1px solid #8884;vertical-align:top}.plots{display:flex;flex-wrap:wrap;gap:1rem}"
    "figure{margin:0;flex:1 1 560px;max-width:660px}figcaption{font-weight:600}svg{width:100%}"
    "svg text{font-size:12px;fill:currentColor}.grid{stroke:#8884}polyline{fill:none;stroke-width:2}"
    "ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:0;padding:0}li::before{content:'';"
    "display:inline-block;width:1.2em;height:.25em;margin-right:.4em;vertical-align:middle;background:var(--c)}"
    ".c0{--c:#2a78c2}.c1{--c:#d9622b}.c2{--c:#3a9b5c}.c3{--c:#9b59b6}.c4{--c:#777}"
    "polyline[class]{stroke:var(--c)}.area{fill:var(--c);opacity:.25}"
)
