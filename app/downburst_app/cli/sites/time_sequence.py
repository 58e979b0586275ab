"""Time-sequence plots of a site's connections as one HTML file that loads nothing, runs nothing, and can be mailed.

The curve is the acknowledged bytes over the time, a mark stands where segments were sent again, a shaded span is a
stall.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate

from downburst.foundation.bounds import ORIGIN_MAX_US, ORIGIN_MIN_US
from downburst.foundation.clock import from_us, to_us
from downburst_analyze.output.plots import HEIGHT, WIDTH, Axis, grid, x_of, y_of
from downburst_app.cli.sites.tracer_words import ends, judgement, length_s, notes, sentence
from downburst_contract.tracer import Stall, TracedConnection, TracedSite

NEEDED = ("bytes_acked", "total_retrans")
"""The variables that a plot shows: its curve, and its marks."""


@dataclass(frozen=True, slots=True)
class Look:
    """One sample, as it is drawn."""

    at_us: int
    acked_bytes: int
    """Since the first sample."""
    resent: int
    """Segments that were sent again since the sample before."""


def page(found: TracedSite) -> str:
    """The whole document: a figure for each connection."""
    title = escape(f"TCP connections of {found.site}")
    remarks = "".join(f"<p>{escape(note)}</p>" for note in notes(found))
    figures = "".join(_figure(one, looks(one, found.variables)) for one in found.connections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"<h1>{title}</h1>{LEGEND}{remarks}{figures}</body></html>\n"
    )


def looks(connection: TracedConnection, variables: Sequence[str]) -> list[Look]:
    """The samples of a connection, oldest first."""
    timed = [(sample[0], sample) for sample in connection.samples if sample and sample[0] is not None]
    samples = [sample for _, sample in timed]
    acked, resent = (list(_grown(_column(samples, variables, name))) for name in NEEDED)
    times_us = (min(max(at_us, ORIGIN_MIN_US), ORIGIN_MAX_US) for at_us, _ in timed)
    return [Look(*one) for one in zip(times_us, accumulate(acked), resent, strict=True)]


def _column(samples: Iterable[Sequence[int | None]], variables: Sequence[str], name: str) -> Iterator[int | None]:
    place = variables.index(name) + 1 if name in variables else None
    for sample in samples:
        yield sample[place] if place is not None and place < len(sample) else None


def _grown(values: Iterable[int | None]) -> Iterator[int]:
    """The growth of a counter since its last known value; a connection with the same ends began it anew."""
    before = None
    for value in values:
        yield 0 if value is None or before is None else min(max(value - before, 0), MOST)
        before = before if value is None else value


def _figure(connection: TracedConnection, seen: Sequence[Look]) -> str:
    said = "".join(f"<p>{escape(line)}</p>" for line in judgement(connection.verdict))
    listed = "".join(f"<li>{escape(sentence(stall))}</li>" for stall in connection.stalls)
    return (
        f"<figure><h2>{escape(ends(connection))}</h2>{_drawing(connection, seen)}"
        f"<figcaption>{said}{f'<ul>{listed}</ul>' if listed else ''}</figcaption></figure>"
    )


def _drawing(connection: TracedConnection, seen: Sequence[Look]) -> str:
    spans_us = [(to_us(stall.begun_at), to_us(stall.until)) for stall in connection.stalls]
    moments_us = [*(look.at_us for look in seen), *(end for span in spans_us for end in span)]
    if not moments_us:
        return "<p>no samples</p>"
    across = TimeAxis.over(moments_us)
    up = Axis.over("bytes acknowledged", [float(look.acked_bytes) for look in seen], from_zero=True)
    stalls = "".join(
        _stall(stall, across, *span, row=number % LABEL_ROWS)
        for number, (stall, span) in enumerate(zip(connection.stalls, spans_us, strict=True))
    )
    name = escape(f"Acknowledged bytes of {ends(connection)} over time; stalls: {len(connection.stalls)}")
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
        f"{grid(across.axis, up)}{stalls}{_curve(seen, across, up)}{_marks(seen, across, up)}</svg>"
    )


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The time from the first moment on, in seconds or minutes."""

    begin_us: int
    unit_us: float
    axis: Axis

    @classmethod
    def over(cls, moments_us: Sequence[int]) -> "TimeAxis":
        """An axis that holds all moments."""
        begin_us, span_us = min(moments_us), max(moments_us) - min(moments_us)
        name, unit_us = ("minutes", 60e6) if span_us > MINUTES_FROM_US else ("seconds", 1e6)
        begun = f"{from_us(begin_us):%Y-%m-%d %H:%M:%S.%f}"[:-3]
        return cls(begin_us, unit_us, Axis.over(f"{name} from {begun} UTC on", [0.0, span_us / unit_us]))

    def x(self, at_us: int) -> float:
        """The place of a moment in the drawing."""
        return x_of(self.axis.place((at_us - self.begin_us) / self.unit_us))


def _stall(stall: Stall, across: TimeAxis, begin_us: int, until_us: int, *, row: int) -> str:
    """A shaded span with its length in seconds; labels of neighbours stand in different rows."""
    left, right = across.x(begin_us), across.x(until_us)
    top, bottom = y_of(1), y_of(0)
    return (
        f'<g><title>{escape(sentence(stall))}</title><rect class="stall" data-seconds="{length_s(stall):.3f}" '
        f'x="{left:.2f}" y="{top}" width="{max(right - left, 0):.2f}" height="{bottom - top}"/>'
        f'<text class="length" x="{(left + right) / 2:.2f}" y="{top + 13 + 13 * row}" text-anchor="middle">'
        f"{length_s(stall):.1f} s</text></g>"
    )


def _curve(seen: Sequence[Look], across: TimeAxis, up: Axis) -> str:
    places = [(across.x(look.at_us), y_of(up.place(look.acked_bytes))) for look in seen]
    if len(places) == 1:
        return f'<circle class="dot" cx="{places[0][0]:.1f}" cy="{places[0][1]:.1f}" r="3"/>'
    return f'<polyline class="acked" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>'


def _marks(seen: Iterable[Look], across: TimeAxis, up: Axis) -> str:
    """A stroke across the curve for each sample before which segments were sent again."""
    return "".join(
        f'<path class="resent" data-segments="{look.resent}" '
        f'd="M{across.x(look.at_us):.1f} {y_of(up.place(look.acked_bytes)) - 7:.1f}v14">'
        f"<title>{look.resent} segments sent again</title></path>"
        for look in seen
        if look.resent
    )


MOST = 2**63 - 1
MINUTES_FROM_US = 600e6
LABEL_ROWS = 3
LEGEND = (
    '<ul class="legend"><li class="acked">acknowledged bytes</li><li class="resent">segments sent again</li>'
    '<li class="stall">stall: nothing was acknowledged although bytes waited</li></ul>'
)
STYLE = (
    ":root{color-scheme:light dark;--acked:#1f66b3;--resent:#b3261e;--stall:#e0a030}"
    "@media(prefers-color-scheme:dark){:root{--acked:#6fb1f5;--resent:#ff8a80;--stall:#b98a2b}}"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.3rem}h2{font-size:1rem;margin:0}figure{margin:1.6rem 0}figcaption p{margin:.2rem 0}"
    "svg{width:100%}svg text{font-size:12px;fill:currentColor}.grid{stroke:#8884}"
    "polyline{fill:none;stroke:var(--acked);stroke-width:2}.dot{fill:var(--acked)}"
    "path{stroke:var(--resent);stroke-width:2}rect{fill:var(--stall);fill-opacity:.35}.length{font-weight:600}"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;padding:0}"
    ".legend li::before{content:'';display:inline-block;width:1em;height:.7em;margin-right:.4em;background:var(--c)}"
    ".legend .acked{--c:var(--acked)}.legend .resent{--c:var(--resent)}.legend .stall{--c:var(--stall)}"
)
