"""Terms of orders in the figures of a plan: a scheduler that starts again continues with them."""

import json
from collections.abc import Iterable, Mapping

from downburst.domain.plans import ON_DEMAND
from downburst_scheduler.models.demand.terms import DemandTerms

Figure = float | str | bool | None


def figures_of(terms: Iterable[DemandTerms]) -> dict[str, Figure]:
    """The figure `demand`: the terms as JSON, sites with equal terms together; nothing without terms."""
    grouped: dict[tuple[str, int, float, float, bool], list[str]] = {}
    for one in terms:
        key = (one.offer, one.rate_bps, one.setup_s, one.hold_s, one.ahead)
        grouped.setdefault(key, []).append(one.site)
    rows = [[*key, sorted(sites)] for key, sites in sorted(grouped.items())]
    return {ON_DEMAND: json.dumps(rows, separators=(",", ":"))} if rows else {}


def terms_of(figures: Mapping[str, Figure]) -> tuple[DemandTerms, ...]:
    """The terms in a plan's figures; none if it has none, or those of another version that can't be read."""
    text = figures.get(ON_DEMAND)
    try:
        rows = json.loads(text) if isinstance(text, str) and len(text) <= CHARS_MOST else []
        found = [
            DemandTerms(str(site), str(offer), int(rate), float(setup_s), float(hold_s), bool(ahead))
            for offer, rate, setup_s, hold_s, ahead, sites in rows
            for site in sites
        ]
    except (ValueError, TypeError, OverflowError):
        return ()
    sound = all(0 <= one.setup_s <= TIME_MOST_S and 0 < one.hold_s <= TIME_MOST_S for one in found)
    return tuple(sorted(found, key=lambda one: one.site)) if sound else ()


CHARS_MOST = 1_000_000
TIME_MOST_S = 86_400.0
