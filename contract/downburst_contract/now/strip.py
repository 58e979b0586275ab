"""The last hours by the quarter hour: the worst feed of each site, and the traffic of the hub."""

from datetime import datetime
from enum import StrEnum

from downburst_contract.base import Answer


class CellState(StrEnum):
    """A site's state in a quarter hour."""

    DOWN = "down"
    """It was not connected for some of the time."""
    LATE = "late"
    """Its worst feed missed the objective."""
    NO_REPORT = "no-report"
    """Products of a feed that it takes whole arrived at the hub, and it reported no latency."""
    WITHIN = "within"
    NOTHING = "nothing"
    """No products were known to be due."""
    UNREAD = "unread"
    """The hub has not read its history yet; a later answer has it."""


class StripCell(Answer):
    """A site in a quarter hour. The share is null without a latency; a site that was down may have one."""

    state: CellState
    share: float | None
    """p99 of the worst feed, relative to its objective at the site: 1 is the objective."""
    feed: str | None
    """The worst feed."""


class StripNow(StripCell):
    """A site in the last 15 minutes."""

    p99_ms: float | None
    objective_ms: float | None
    products: int
    """The deliveries behind the figure; p99 of fewer than 20 is their maximum."""
    since: datetime | None
    """The beginning of the present outage, if it is down."""


class StripRow(Answer):
    """A site, or the sum of the others: the worst of them in each quarter hour."""

    site: str | None
    """Null: the other sites."""
    sites: int
    """Sites in this row."""
    cells: list[StripCell]
    """One for each of `quarters`."""
    now: StripNow


class Strip(Answer):
    """Sites in the last hours, the worst first."""

    quarters: list[datetime]
    """The beginnings of the quarter hours, oldest first; the last one has not ended."""
    rows: list[StripRow]
    others: StripRow | None
    """The sites beyond the limit."""
    never_connected: int
    """Sites without a row, because they have never received anything."""


class TrafficPoint(Answer):
    """A quarter hour; null: nothing was stored for it."""

    at: datetime
    in_bps: float | None
    out_bps: float | None
    saved_share: float | None
    """The share of the bytes of separate copies for each site that multicast and relays saved; may be negative."""
    worst_share: float | None
    """p99 of the worst feed at any site, relative to its objective."""


class TrafficToday(Answer):
    """Sums since 00:00 UTC, or since the hub began to count; null: nothing was stored."""

    since: datetime | None
    in_bytes: int | None
    egress_bytes: int | None
    unicast_equivalent_bytes: int | None


class NowHistory(Answer):
    """The hub's traffic and worst latency of the last hours."""

    points: list[TrafficPoint]
    today: TrafficToday
    egress_capacity_bps: float
    """The rate that may leave the hub, by the setting `egress_capacity_bps`."""
    latency_read: bool
    """False: the hub is still reading its history, and `worst_share` is null where it has not read it."""
