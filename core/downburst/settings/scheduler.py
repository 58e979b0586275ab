"""Settings of the scheduler: of the hub, and of single feeds."""

from pydantic import Field

from downburst.settings.section import Section


class FeedScheduling(Section):
    """Settings of the scheduler for one feed."""

    dry_run: bool | None = Field(default=None, description="As `scheduler.dry_run`, for this feed.")


class SchedulerSettings(Section):
    """Decisions of the scheduler; times are divided by `time_scale`."""

    step_s: float = Field(
        default=10.0, gt=0, description="Seconds between two reviews of each feed. The default makes six a minute."
    )
    window_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds of recent arrivals that a decision uses. The default covers NGRID's quiet minutes.",
    )
    dwell_s: float = Field(
        default=300.0, ge=0, description="Seconds a transport is kept at least. A change costs joins and repair."
    )
    agreeing_windows: int = Field(
        default=3,
        ge=1,
        description="Consecutive reviews that must favour a change. A single burst is no reason to change.",
    )
    min_gain: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="Share of egress a change must save. Below it, measuring errors would decide.",
    )
    changes_per_day: int = Field(
        default=8,
        ge=0,
        description="Changes of transport that a feed may make by figures in a day; two of them are kept for missed "
        "objectives. The default allows for day, night and a step or two.",
    )
    apart: bool = Field(
        default=False,
        description="Whether `downburst scheduler` runs beside the hub; ledger and events then need servers.",
    )
    dry_run: bool = Field(
        default=False,
        description="Whether changes are only logged and stored, not made. Pins and fallbacks are made.",
    )
    groups_by_losses: bool = Field(
        default=True,
        description="Whether the capacity that a site's host measures while a group loses packets sets the rate of "
        "its line, for groups by rate. Without it only stated access rates and sweeps do.",
    )
    circuit_cost: float = Field(
        default=1.0,
        ge=0,
        description="Cost of one bit per second of a circuit while it is up, relative to one of egress. At 1 an "
        "hour of "
        "1 Gb/s is worth 450 GB.",
    )
    unwanted_cost: float = Field(
        default=0.5,
        ge=0,
        description="Cost of a byte that a group brings to a site without a subscription to it, relative to one "
        "of egress.",
    )
    tunnel_cost: float = Field(
        default=1.0,
        ge=0,
        description="Cost of one bit per second that an AMT relay sends, relative to one of the hub's egress. 0: "
        "the relay's line is not the hub's.",
    )
    miss_cost_bps: float = Field(
        default=1e12,
        gt=0,
        description="Cost of a latency of twice the objective, as bits per second of egress. Above the cost of any "
        "egress.",
    )
    feeds: dict[str, FeedScheduling] = Field(default={}, description="For feeds by name: dry_run where it differs.")

    def dry_run_of(self, feed: str) -> bool:
        """True if changes of this feed are only logged and stored."""
        own = self.feeds.get(feed)
        return self.dry_run if own is None or own.dry_run is None else own.dry_run
