"""Latency and volume: percentiles, histories, distributions, and who feeds whom. Latencies are in milliseconds."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from downburst.domain.latency import Certainty, LatencyKind
from downburst.domain.plans import Transport
from downburst_contract.base import Answer, OffsetTime
from downburst_contract.now.strip import CellState


class Figures(Answer):
    """What is known of some latencies; null where nothing is counted."""

    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    count: int
    negative: int
    """How many are negative: the clocks were wrong by more than that."""
    bound: float | None
    """The largest error of the clocks' comparison; null if one clock took both stamps."""
    certainty: Certainty | None
    """Of the median: negative medians are `clock`, those below twice the bound `not known`."""


class PathLatency(Answer):
    """The latency of a feed to a site by a transport."""

    feed: str
    site: str
    transport: Transport
    kind: LatencyKind
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    count: int
    negative: int
    bound: float | None
    certainty: Certainty | None


class LatencyPoint(Answer):
    """The latencies of one step."""

    at: OffsetTime
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None
    count: int
    negative: int
    bound: float | None
    certainty: Certainty | None


class LatencyHistory(Answer):
    """Latency over time, oldest first; steps without products are left out."""

    step_minutes: int
    begin: Annotated[OffsetTime, Field(alias="from")]
    """The range that was asked for; the end is not part of it."""
    end: Annotated[OffsetTime, Field(alias="to")]
    objective_ms: float | None
    """Of the feed at the site, or of the feed; null for other kinds than `distribution`, which have none."""
    points: list[LatencyPoint]


class Bin(Answer):
    """How many latencies lie between two bounds."""

    from_ms: float
    to_ms: float
    count: int


class Histogram(Answer):
    """The distribution of latencies, with the figures of all products."""

    bins: list[Bin]
    figures: Figures
    objective_ms: float | None
    """Of the feed at the site, or of the feed; null for other kinds than `distribution`, which have none."""
    over_objective: int | None
    """How many products took longer than that, to within 2 % of the objective."""


class HeatCell(Answer):
    """A site in one step; the figures are null without a latency. A site that was down may have some."""

    state: CellState
    share: float | None
    """p99, relative to the objective at the site: 1 is the objective."""
    p99_ms: float | None
    products: int
    """The deliveries behind the figure; p99 of fewer than 20 is their maximum."""


class HeatRow(Answer):
    """A site over time."""

    site: str
    objective_ms: float
    cells: list[HeatCell]
    """One for each of `steps`."""


class Heat(Answer):
    """The latencies of a feed by site and step: the sites with the highest share of their objective first."""

    step_minutes: int
    steps: list[OffsetTime]
    """The beginnings of the steps, oldest first; the last one may not have ended."""
    rows: list[HeatRow]
    others: int
    """Sites beyond the limit."""


class FeedVolume(Answer):
    """What came into a feed."""

    feed: str
    bytes: int
    products: int
    mean_bytes_per_hour: float
    max_bytes_per_hour: float
    share: float
    products_per_hour: float


class Volume(Answer):
    """The volume of each feed, the largest first."""

    minutes: int
    since: OffsetTime
    hours_seen: float
    bytes: int
    feeds: list[FeedVolume]


class Arrivals(Answer):
    """What came into a feed in one step."""

    at: OffsetTime
    products: int
    bytes: int
    peak_1s_bytes: int


class VolumeHistory(Answer):
    """Volume over time, oldest first; steps without products are left out."""

    step_minutes: int
    begin: Annotated[OffsetTime, Field(alias="from")]
    end: Annotated[OffsetTime, Field(alias="to")]
    points: list[Arrivals]


class TreeUpstream(Answer):
    """A hub that this hub is a site of."""

    upstream: str
    connected: bool
    feeds: list[str]


class TreeFeed(Answer):
    """A feed that a site takes, and how it travels now."""

    feed: str
    transport: Transport | None
    relay: str | None
    """The relay that fans it out to this site, by the present plan."""


class TreeSite(Answer):
    """A site with its feeds."""

    site: str
    organisation: str
    connected: bool
    via: list[str]
    """The relays on its way to the hub, the nearest to the site first."""
    circuit: int | None
    """The ordered circuit between two of these relays that carries it now."""
    feeds: list[TreeFeed]


class TreeRelay(Answer):
    """A relay of this hub, with the sites behind it."""

    relay: str
    connected: bool
    sites: list[str]


class Tree(Answer):
    """The distribution tree: upstreams, this hub, relays, and sites with their feeds; no addresses, no contacts."""

    hub: str
    upstreams: list[TreeUpstream]
    relays: list[TreeRelay]
    sites: list[TreeSite]


class MinuteLatency(Answer):
    """The latencies of one minute."""

    minute: datetime
    p50: float | None
    p99: float | None
    bound: float | None
    certainty: Certainty | None


class FeedLatency(Answer):
    """The latencies of a feed at all its sites over the last hour."""

    distribution_ms: Figures
    end_to_end_ms: Figures
    history: list[MinuteLatency]
