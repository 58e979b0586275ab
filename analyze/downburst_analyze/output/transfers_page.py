"""Transfers as one HTML file: sessions, suitability for circuits, factors of throughput. It loads nothing."""

from collections.abc import Iterator

from downburst_analyze.output.page import table, whole_page
from downburst_analyze.output.variance import FACTORS, factor_rows
from downburst_analyze.output.wording import volume
from downburst_analyze.sessions import SessionFigures
from downburst_analyze.variance import VarianceFigures
from downburst_scheduler.figures.wording import duration, megabits


def transfers_page(name: str, figures: SessionFigures, depends: VarianceFigures | None) -> str:
    """The whole document; too few transfers have no factors."""
    body = table(("figure", ""), _facts(figures)) + table(SUITED, _suited(figures))
    if depends is None:
        return whole_page(f"{name}: transfers", "There are too few transfers to compare their throughput.", body)
    sentence = f"{depends.sentence[0].upper()}{depends.sentence[1:]}."
    return whole_page(f"{name}: transfers", sentence, body + table(FACTORS, factor_rows(depends)))


def _facts(figures: SessionFigures) -> Iterator[tuple[str, str]]:
    yield "transfers", str(figures.transfers)
    yield "peers", str(figures.peers)
    yield "sessions", f"{figures.sessions}, of which {figures.counted_sessions} have at least 100 MB"
    rates = (f"{name} {megabits(value)}" for name, value in figures.throughput_quantiles_bps.items())
    yield "throughput of a transfer", ", ".join(rates)
    for name, session in (("longest session", figures.longest), ("largest session", figures.largest)):
        if session is not None:
            length = duration(session.length_s * 1e3)
            yield name, f"{volume(session.size_bytes)} in {length}, {session.transfers} transfers"


def _suited(figures: SessionFigures) -> Iterator[tuple[str, ...]]:
    for one in figures.suitability:
        shares = (f"{share:.1%}" for share in (one.share_of_sessions, one.share_of_transfers, one.share_of_bytes))
        yield (f"{one.setup_delay_s:g} s", volume(one.threshold_bytes), str(one.sessions), *shares)


SUITED = ("set-up", "least session", "sessions", "share of sessions", "of transfers", "of bytes")
