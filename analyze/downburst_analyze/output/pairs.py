"""Heavy pairs of feed and site, as tables and as one JSON document."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.markup import escape

from downburst_analyze.output.document import Source
from downburst_analyze.output.wording import plain, volume
from downburst_analyze.pairs.learning import MINUTES_A_DAY, DayCoverage, HeavyStudy


def print_pairs(console: Console, study: HeavyStudy) -> None:
    """The rules, the coverage of the last days, and the advice in one sentence at the end."""
    rules = plain("feed", "site", "heavy minutes", "bytes in them", "last heavy")
    for one in study.pairs[:SHOWN_PAIRS]:
        last = f"{_moment(one.last_minute):%Y-%m-%d %H:%M}Z"
        rules.add_row(escape(one.feed), escape(one.site), str(one.heavy_minutes), volume(one.heavy_bytes), last)
    if len(study.pairs) > SHOWN_PAIRS:
        rules.add_row(f"and {len(study.pairs) - SHOWN_PAIRS} more", "", "", "", "")
    days = plain("day", "rules", "of them unused", "heavy pairs", "heavy bytes", "covered")
    for day in study.days[-SHOWN_DAYS:]:
        counts = (str(day.rules), str(day.unused_rules), str(day.heavy_pairs))
        covered = "-" if day.covered_share is None else f"{day.covered_share:.1%}"
        days.add_row(_date(day), *counts, volume(day.heavy_bytes), covered)
    for table in (rules, days):
        console.print(table)
        console.print()
    console.print(f"{study.sentence[0].upper()}{study.sentence[1:]}.", soft_wrap=True, markup=False)


def pairs_document(source: Source, study: HeavyStudy) -> dict[str, Any]:
    """The document of learnt pairs."""
    return {
        **source,
        "kind": "pairs",
        "rules": asdict(study.rules),
        "pairs": [asdict(one) | {"last_heavy": _moment(one.last_minute).isoformat()} for one in study.pairs],
        "days": [asdict(day) | {"date": _date(day), "covered_share": day.covered_share} for day in study.days],
        "sentence": study.sentence,
    }


def _date(day: DayCoverage) -> str:
    return f"{_moment(day.day * MINUTES_A_DAY):%Y-%m-%d}"


def _moment(minute: int) -> datetime:
    return datetime.fromtimestamp(minute * 60, tz=UTC)


SHOWN_PAIRS = 30
SHOWN_DAYS = 14
