"""New legs of feeds in the plans: products that a probe's admission did not count on."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from downburst.domain.plans import Leg, Plan, Transport
from downburst.foundation.rates import rate_text

Legs = Mapping[tuple[str, str, str], int]
"""By feed, transport and the group or circuit: the rate of a leg, 0 where it has none of its own."""


@dataclass(frozen=True, slots=True)
class NewLeg:
    """A leg that began, or got a higher rate, while a probe ran."""

    feed: str
    transport: str
    rate_bps: int

    @property
    def words(self) -> str:
        """The leg for people."""
        rate = f" of {rate_text(self.rate_bps)}" if self.rate_bps else ""
        return f"{self.feed} has a new {self.transport} leg{rate} to the site"


def legs_to(ends: Collection[str], plans: Iterable[Plan]) -> Legs:
    """The legs with a rate or a circuit of their own to any of these sites; unicast follows the rate that is free."""
    return {
        (plan.feed, leg.transport.value, _place(leg)): leg.rate_bps or 0
        for plan in plans
        for leg in plan.legs
        if leg.transport is not Transport.UNICAST and not set(ends).isdisjoint(leg.sites)
    }


def new_leg(ends: Collection[str], before: Legs, plan: Plan) -> NewLeg | None:
    """The first leg of a plan that needs more of the path than before."""
    for (feed, transport, place), rate_bps in legs_to(ends, [plan]).items():
        known_bps = before.get((feed, transport, place))
        if known_bps is None or known_bps * RISE < rate_bps:
            return NewLeg(feed, transport, rate_bps)
    return None


def _place(leg: Leg) -> str:
    circuits = ",".join(str(number) for _, number in sorted(leg.circuits))
    return f"{leg.group or ''} {circuits}"


RISE = 1.05
"""A rate that is fitted anew each round, a little above the last one, ends no probe."""
