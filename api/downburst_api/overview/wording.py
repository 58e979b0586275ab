"""Sentences of incidents: a subject, a figure and a time."""

from collections.abc import Collection
from datetime import datetime, timedelta

from downburst.domain.alarms import AlarmKind
from downburst.live.site_states import SiteStanding, SiteState
from downburst_api.overview.wrong import Wrong


def title_and_cause(wrong: Wrong, standing: SiteStanding | None = None) -> tuple[str, str | None]:
    """`psu.edu is down` as a part of a sentence, and the cause as a sentence; None: the title says all that is known.

    `standing`: of the site that it is about, if any.
    """
    fault = wrong.fault
    names = {fault.site, fault.feed}
    if wrong.kind is AlarmKind.SITE_DOWN and fault.site and standing is not None:
        return f"{fault.site} {_ABSENCES[standing.state]}", _reason(standing)
    head, _, rest = fault.sentence.partition(": ")
    if wrong.kind is AlarmKind.OBJECTIVE and fault.site and fault.feed:
        return f"{fault.feed} is late at {fault.site}", _late(rest)
    if not rest:
        head, _, rest = fault.sentence.partition("; ")
    return head, sentence_of(rest, names) if rest else None


def lasting(title: str, wrong: Wrong, since: datetime, now: datetime) -> str:
    """The title as a part of a sentence: `psu.edu has been down for 6 min`."""
    is_down = f"{wrong.fault.site} is down"
    if title == is_down and now - since >= timedelta(seconds=1):
        return f"{wrong.fault.site} has been down for {duration_words(now - since)}"
    return title


def duration_words(length: timedelta) -> str:
    """`40 s`, `6 min`, `3 h` or `4 days`."""
    seconds = max(length.total_seconds(), 0.0)
    for unit, size_s in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size_s:
            return f"{seconds // size_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def size_words(size_bytes: int) -> str:
    """Three digits with a unit: `2.77 GB`."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= size:
            value = size_bytes / size
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{size_bytes} B"


def moment_words(moment: datetime, now: datetime) -> str:
    """`22:36`, with the date if it is on another day; UTC."""
    return f"{moment:%H:%M}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M}"


def sentence_of(text: str, names: Collection[str | None] = ()) -> str:
    """A sentence with a capital letter and a full stop; a command stays as it is."""
    if text.startswith("downburst "):
        return text
    return capitalised(text if text.endswith((".", "?", "!")) else f"{text}.", names)


def capitalised(text: str, names: Collection[str | None] = ()) -> str:
    """With a capital letter at the beginning, unless a name stands there."""
    first = text.split(" ", 1)[0].rstrip(",:;.")
    if first in names or not first.islower() or "." in first:
        return text
    return text[:1].upper() + text[1:]


def _late(figures: str) -> str | None:
    """`p99 49.2 s in 15 min, objective 30 s` as a sentence."""
    quantile, _, rest = figures.partition(" ")
    return f"{quantile} is {rest.replace(', objective ', ', the objective ')}." if rest else None


def _reason(standing: SiteStanding) -> str | None:
    return sentence_of(standing.reason) if standing.reason else None


_ABSENCES = {
    SiteState.NEVER_ENROLLED: "has never enrolled",
    SiteState.NEVER_CONNECTED: "has never connected",
    SiteState.REMOVED: "is removed",
    SiteState.CONNECTED: "was down",
    SiteState.STANDS_BY: "was down",
    SiteState.AWAY: "is down",
}
"""A site that is back keeps its alarm until the next look."""
