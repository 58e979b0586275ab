"""Rows of recorded and made-up traffic: sessions, releases, heavy flows, causes of variance. No network."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.harness.report import Goal, Row
from bench.seeds import feeds
from bench.seeds.measures.group import Group, Wanted
from downburst.recordings.recording import Transfer
from downburst_analyze.pairs.learning import PairMinute, learn
from downburst_analyze.sessions import sessions, sessions_of_products
from downburst_analyze.variance import VarianceStudy
from downburst_scheduler.models.demand.playing import reservations
from downburst_scheduler.models.demand.terms import DemandTerms
from downburst_scheduler.models.transports import releases


def sessions_of_the_hour(_directory: Path, wanted: Wanted) -> list[Row]:
    """Sessions of the hour's products at 1 Gb/s with a gap of 1 s, found in two ways."""
    arrivals, note = feeds.hour()
    _noted(wanted, note)
    took_s = arrivals.size_bytes * 8 / GIGABIT_BPS
    transfers = (
        Transfer(round(at_s * 1e6), float(spent_s), int(size), "site")
        for at_s, spent_s, size in zip(arrivals.at_s, took_s, arrivals.size_bytes, strict=True)
    )
    by_transfer = len(list(sessions(transfers, gap_s=GAP_S)))
    found = sessions_of_products(arrivals.at_s, arrivals.size_bytes, gap_s=GAP_S, rate_bps=GIGABIT_BPS)
    case = f"{_named(note)}: sessions with a gap of {GAP_S:.0f} s"
    return [Row("B5", case, "sessions", len(found), "merged one by one", by_transfer, 1, _NEAR)]


def releases_of_the_hour(_directory: Path, wanted: Wanted) -> list[Row]:
    """Releases of a circuit on demand: the rules of the acting loop, beside the sum over gaps."""
    arrivals, note = feeds.hour()
    _noted(wanted, note)
    terms = DemandTerms("site", "offer", 100_000_000, SETUP_S, HOLD_S)
    held = reservations(arrivals, terms)
    closed = releases(arrivals, setup_s=SETUP_S, hold_s=HOLD_S)
    case = f"{_named(note)}: releases with set-up {SETUP_S:.0f} s and hold {HOLD_S:.0f} s"
    share = f"{_named(note)}: share of the time released"
    return [
        Row("W12", case, "", held.releases, "sum over gaps", closed.releases, 1, _NEAR),
        Row("W12", share, "%", 100 * held.released_share, "sum over gaps", 100 * closed.share_of_time, 1, _NEAR),
    ]


def heavy_flows(_directory: Path, _wanted: Wanted) -> list[Row]:
    """Rules for heavy flows, learnt on one made-up day and judged on the next."""
    study = learn(_heavy_minutes())
    covered = 100 * (study.days[-1].covered_share or 0.0)
    return [Row("C12", "made-up: 20 pairs heavy each hour, 10 only once", "%", covered, "HNTES", 94.0, 1, _AS_MUCH)]


def throughput_by_concurrency(_directory: Path, _wanted: Wanted) -> list[Row]:
    """Transfers that a disk limits, whatever the network carries."""
    study, drawn = VarianceStudy(), np.random.default_rng(1)
    starts_s = np.sort(drawn.uniform(0, DAYS * feeds.DAY_S, TRANSFERS))
    rates_bps = np.exp(drawn.normal(np.log(1.5e9), 0.4, TRANSFERS))
    log = (
        Transfer(round(start_s * 1e6), SIZE_BYTES * 8 / rate, SIZE_BYTES, "site")
        for start_s, rate in zip(starts_s.tolist(), rates_bps.tolist(), strict=True)
    )
    for _ in study.passing(log):
        pass
    found = study.figures()
    if found is None:
        raise RuntimeError("too few transfers for a study of their variance")
    of_network = next(one for one in found.factors if one.name == "concurrency")
    return [
        Row(
            "B11",
            f"made-up: {TRANSFERS} transfers that a disk limits: correlation",
            "",
            abs(of_network.pearson or 0.0),
            "published",
            0.03,
            1,
            Goal("ours", "<=", 0.2),
        )
    ]


def _heavy_minutes() -> Iterator[PairMinute]:
    """Two days: the same pairs each hour, and flows that come once."""
    for minute in range(2 * MINUTES_A_DAY):
        if minute % 60 == 0:
            yield from (PairMinute("NGRID", f"site-{number}", minute, 1_500_000_000) for number in range(20))
        if minute % 288 == 7:
            yield PairMinute("NGRID", f"once-{minute}", minute, 2_000_000_000)


def _named(note: str) -> str:
    return "made-up NGRID hour" if note else "recorded NGRID hour"


def _noted(wanted: Wanted, note: str) -> None:
    if note and note not in wanted.notes:
        wanted.notes.append(note)


GIGABIT_BPS = 1e9
GAP_S, SETUP_S, HOLD_S = 1.0, 1.0, 10.0
MINUTES_A_DAY = 1_440
TRANSFERS, SIZE_BYTES, DAYS = 145, 32_000_000_000, 2
_NEAR, _AS_MUCH = Goal("ratio", "1 +-", 0.05), Goal("ratio", ">=", 1.0)
GROUPS = {
    "sessions": Group(("B5",), sessions_of_the_hour),
    "releases": Group(("W12",), releases_of_the_hour),
    "heavy": Group(("C12",), heavy_flows),
    "variance": Group(("B11",), throughput_by_concurrency),
}
