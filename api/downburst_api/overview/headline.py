"""The state of the hub in one sentence: pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from downburst.domain.alarms import Severity
from downburst_api.overview.incidents import Incident
from downburst_api.overview.wording import capitalised, lasting
from downburst_contract.now.strip import CellState


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """Sites by their state in the last 15 minutes."""

    within: int = 0
    late: int = 0
    down: int = 0
    not_measured: int = 0
    idle: int = 0

    @classmethod
    def of(cls, states: Iterable[CellState]) -> "SiteCounts":
        """Counts states."""
        counted = Counter(states)
        return cls(
            counted[CellState.WITHIN],
            counted[CellState.LATE],
            counted[CellState.DOWN],
            counted[CellState.NO_REPORT] + counted[CellState.UNREAD],
            counted[CellState.NOTHING],
        )

    @property
    def sites(self) -> int:
        """All of them."""
        return self.within + self.late + self.down + self.not_measured + self.idle


def status_out(
    incidents: Sequence[Incident], sites: SiteCounts, now: datetime, *, site: str | None = None
) -> dict[str, Any]:
    """The sentence, a second one about the sites, and the counts, for clients; of the hub, or of one site."""
    by_severity = Counter(one.severity for one in incidents if one.counts)
    pressing = [one for one in incidents if one.counts and one.severity is not Severity.INFORMATION]
    about_sites = sites_sentence(sites) if site is None else site_sentence(site, sites)
    if pressing:
        sentence, detail = _pressing(pressing, now), f"{about_sites}."
    else:
        sentence, detail = about_sites, None
    return {
        "sentence": sentence,
        "detail": detail,
        "counts": {
            **{severity.value: by_severity[severity] for severity in Severity},
            "silenced": sum(one.silence is not None for one in incidents),
            "sites": sites.sites,
            **{name: getattr(sites, name) for name in SiteCounts.__dataclass_fields__},
        },
    }


def sites_sentence(sites: SiteCounts) -> str:
    """`All 138 sites receive their feeds within the objectives`, which is never said of sites without a latency."""
    total = sites.sites
    if total == 0:
        return "No site has received a feed yet"
    if sites.within == total:
        subject = "The only site receives its" if total == 1 else f"All {total} sites receive their"
        return f"{subject} feeds within the objectives"
    parts = _others(sites)
    if sites.within:
        receive = "receives its" if sites.within == 1 else "receive their"
        noun = "site" if total == 1 else "sites"
        parts.insert(0, f"{sites.within} of {total} {noun} {receive} feeds within the objectives")
    else:
        parts[0] = f"{_of(total)} {parts[0]}"
    return "; ".join(parts)


def site_sentence(site: str, sites: SiteCounts) -> str:
    """`psu.edu receives its feeds within the objectives`, or its state; `sites` counts this one alone."""
    if sites.sites == 0:
        return f"{site} has not received a feed yet"
    if sites.within:
        return f"{site} receives its feeds within the objectives"
    return f"{site} {_others(sites)[0].removeprefix('1 ')}"


def _others(sites: SiteCounts) -> list[str]:
    """The sites that are not within the objectives, the worst first."""
    words = (
        (sites.down, "is down", "are down"),
        (sites.late, "is late", "are late"),
        (sites.not_measured, "sent no latency reports", "sent no latency reports"),
        (sites.idle, "had nothing to receive in the last 15 min", "had nothing to receive in the last 15 min"),
    )
    return [f"{count} {one if count == 1 else many}" for count, one, many in words if count]


def _of(total: int) -> str:
    return "Of 1 site," if total == 1 else f"Of {total} sites,"


def _pressing(pressing: Sequence[Incident], now: datetime) -> str:
    parts = [lasting(one.title, one.wrong, one.since, now) for one in pressing[:NAMED]]
    more = len(pressing) - len(parts)
    if more:
        parts.append(f"{more} more {'incident' if more == 1 else 'incidents'}")
    first = pressing[0].wrong.fault
    return capitalised("; ".join(parts), {first.site, first.feed})


NAMED = 2
"""A sentence with more incidents is not read."""
