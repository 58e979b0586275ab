"""A planner that records questions about other conditions, and gives an answer with round figures."""

from dataclasses import dataclass, field, replace
from typing import Any

from downburst.domain.plans import (
    Candidate,
    ConditionFlip,
    Conditions,
    Judgement,
    OtherConditions,
    Transport,
    WhatIf,
)
from downburst.foundation.errors import DownburstError


@dataclass
class AskedPlanner:
    """The scheduler from the api's side."""

    asked: list[tuple[str, OtherConditions, bool]] = field(default_factory=list)
    refusal: DownburstError | None = None

    async def what_if(self, feed: str, other: OtherConditions, *, search: bool) -> WhatIf:
        self.asked.append((feed, other, search))
        if self.refusal is not None:
            raise self.refusal
        tried = replace(TODAY, **{name: value for name, value in _given(other).items() if value is not None})
        flips = (ConditionFlip("sites", below=True, at=3, transport=Transport.UNICAST),) if search else ()
        return WhatIf(
            feed=feed,
            today=TODAY,
            tried=tried,
            traffic=other.traffic,
            products=600,
            span_s=300.0,
            mean_bps=8e6,
            begun_s_ago=300.0,
            now=Judgement(Transport.UNICAST, "unicast: 2 sites would cost 16.8 Mb/s", (COPIES, GROUP)),
            then=Judgement(Transport.MULTICAST, f"multicast: {tried.sites} sites", (GROUP, COPIES)),
            flips=flips,
            complete=search,
            notes=("a note",),
        )


def _given(other: OtherConditions) -> dict[str, Any]:
    return {name: getattr(other, name) for name in ("sites", "egress_bps", "objective_ms", "setup_s")}


TODAY = Conditions(sites=2, egress_bps=1e9, objective_ms=2_000.0, setup_s=None)
GROUP = Candidate(
    Transport.MULTICAST,
    feasible=True,
    reason="one group",
    egress_bps=8.2e6,
    peak_egress_bps=9e6,
    predicted_p50_ms=20.0,
    predicted_p95_ms=60.0,
    predicted_p99_ms=80.0,
    predicted_max_ms=90.0,
    reserved_bps=0.0,
    price_bps=16.6e6,
    score_bps=16.6e6,
)
COPIES = replace(GROUP, transport=Transport.UNICAST, reason="a copy to each of 2 sites", egress_bps=16.8e6)
