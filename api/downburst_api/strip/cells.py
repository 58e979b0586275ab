"""The strip's cells and rows: pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from downburst.domain.latency import QUARTER_MINUTES
from downburst.foundation.clock import from_us, to_us
from downburst_api.strip.worst import BySite, Worst
from downburst_contract.now.strip import CellState


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a site was not connected."""

    begin: datetime
    end: datetime | None = None
    """None: it lasts."""

    def touches(self, minute: int, minutes: int) -> bool:
        """True if it lasted into a range of minutes."""
        begin, end = from_us(minute * 60_000_000), from_us((minute + minutes) * 60_000_000)
        return self.begin < end and (self.end is None or self.end > begin)


@dataclass(frozen=True, slots=True)
class StripSite:
    """A site of the strip."""

    name: str
    whole_feeds: frozenset[str]
    """Feeds of which it takes every product; it may rightly report nothing of the others."""
    since: datetime | None = None
    """When its record was made."""
    outages: tuple[Outage, ...] = ()


@dataclass(frozen=True, slots=True)
class Day:
    """What the cells are made of."""

    quarters: Sequence[int]
    """The first minutes of the quarter hours, oldest first."""
    read: Mapping[int, BySite]
    arrived: Mapping[int, Collection[str]]
    """By quarter hour, the feeds with products that should have been reported by now."""
    present: BySite
    due: Collection[str]
    """As `arrived`, in the last 15 minutes."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A site's state with its worst feed."""

    state: CellState
    worst: Worst | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A site, or several: the worst of them in each quarter hour."""

    site: str | None
    sites: int
    cells: Sequence[Cell]
    now: Cell
    down_since: datetime | None = None


def rows_of(sites: Iterable[StripSite], day: Day, *, limit: int) -> tuple[list[Row], Row | None]:
    """The worst sites, the worst first, and the sum of the others if there are any."""
    rows = sorted((_row(site, day) for site in sites), key=_worst_first)
    return rows[:limit], _together(rows[limit:])


def state_now(site: StripSite, present: BySite, due: Collection[str]) -> Cell:
    """A site in the last 15 minutes; down only if it still is."""
    worst = present.get(site.name)
    down = any(outage.end is None for outage in site.outages)
    return Cell(state_of(worst, down=down, was_due=not site.whole_feeds.isdisjoint(due)), worst)


def state_of(worst: Worst | None, *, down: bool, was_due: bool) -> CellState:
    """The state of a site in a time with this worst feed."""
    if down:
        return CellState.DOWN
    if worst is not None:
        return CellState.LATE if worst.share > 1 else CellState.WITHIN
    return CellState.NO_REPORT if was_due else CellState.NOTHING


def row_out(row: Row) -> dict[str, Any]:
    """For clients."""
    worst = row.now.worst
    now = _cell_out(row.now) | {
        "p99_ms": worst.p99_ms if worst else None,
        "objective_ms": worst.objective_ms if worst else None,
        "products": worst.products if worst else 0,
        "since": row.down_since,
    }
    return {"site": row.site, "sites": row.sites, "cells": [_cell_out(cell) for cell in row.cells], "now": now}


def _row(site: StripSite, day: Day) -> Row:
    cells = [_cell(site, quarter, day) for quarter in day.quarters]
    lasting = [outage.begin for outage in site.outages if outage.end is None]
    return Row(site.name, 1, cells, state_now(site, day.present, day.due), min(lasting, default=None))


def _cell(site: StripSite, quarter: int, day: Day) -> Cell:
    down = any(outage.touches(quarter, QUARTER_MINUTES) for outage in site.outages)
    if quarter not in day.read:
        return Cell(CellState.DOWN if down else CellState.UNREAD)
    worst = day.read[quarter].get(site.name)
    existed = site.since is None or to_us(site.since) // 60_000_000 < quarter
    due = existed and not site.whole_feeds.isdisjoint(day.arrived.get(quarter, ()))
    return Cell(state_of(worst, down=down, was_due=due), worst)


def _worst_first(row: Row) -> tuple[int, float, float, str]:
    """By the present state, the present share, the worst share of the day, the name."""
    of_day = max((_share(cell) for cell in row.cells), default=_NONE)
    return ORDER.index(row.now.state), -_share(row.now), -of_day, row.site or ""


def _together(rows: Sequence[Row]) -> Row | None:
    if not rows:
        return None
    cells = [_worst(column) for column in zip(*(row.cells for row in rows), strict=True)]
    began = [row.down_since for row in rows if row.down_since is not None]
    return Row(None, len(rows), cells, _worst([row.now for row in rows]), min(began, default=None))


def _worst(cells: Sequence[Cell]) -> Cell:
    """The worst state and the worst share, which may be of different sites."""
    share = max(cells, key=_share)
    return Cell(min((cell.state for cell in cells), key=ORDER.index), share.worst)


def _share(cell: Cell) -> float:
    return _NONE if cell.worst is None else cell.worst.share


def _cell_out(cell: Cell) -> dict[str, Any]:
    share = None if cell.worst is None else round(cell.worst.share, 4)
    return {"state": cell.state, "share": share, "feed": cell.worst.feed if cell.worst else None}


ORDER = (
    CellState.DOWN,
    CellState.LATE,
    CellState.NO_REPORT,
    CellState.UNREAD,
    CellState.WITHIN,
    CellState.NOTHING,
)
"""The worst first: silence is worse than a measured share within the objective."""
_NONE = float("-inf")
