"""Plans in answers, with the traffic of each of their legs."""

from dataclasses import asdict
from typing import Any

from downburst.domain.plans import LEG_FIGURES, OF_LEGS, LegCounters, Plan, Transport, leg_figure


def plan_out(plan: Plan, counters: list[LegCounters]) -> dict[str, Any]:
    """A plan for clients, with the traffic that each of its legs sent under it."""
    sent = {row.leg: row for row in counters if row.feed == plan.feed and row.version == plan.version}
    listed = [_leg_out(asdict(leg), sent.pop(leg.leg, None)) for leg in plan.legs]
    # Legs of an earlier plan may send a last product after the change; it is counted here and must stay visible.
    rest = [_leg_out({"leg": row.leg, "transport": row.transport, "sites": ()}, row) for row in sent.values()]
    return {
        "feed": plan.feed,
        "version": plan.version,
        "transport": plan.transport,
        "reason": plan.reason,
        "made_at": plan.made_at,
        "pinned": plan.pinned,
        "legs": listed + rest,
        "groups": _groups_out(plan),
        "candidates": [asdict(candidate) for candidate in plan.candidates],
        "figures": {name: value for name, value in plan.figures.items() if not name.startswith(OF_LEGS)},
        "floor": _floor_out(plan),
        "flip": plan.figures.get("flip") or None,
        "would_be": plan.figures.get("would_be"),
        "products": max((row["products"] for row in listed + rest), default=0),
    }


def _groups_out(plan: Plan) -> list[dict[str, Any]]:
    """The groups of a plan, the slowest first, with what was predicted and measured of each."""
    groups = sorted((leg for leg in plan.legs if leg.group is not None), key=lambda leg: leg.rate_bps or 0)
    return [
        {"leg": leg.leg, "rate_bps": leg.rate_bps, "site_names": list(leg.sites)}
        | {name: plan.figures.get(leg_figure(leg.leg, name)) for name in LEG_FIGURES}
        for leg in groups
    ]


def _floor_out(plan: Plan) -> dict[str, Any] | None:
    """The machines' own time inside the plan's predictions, in milliseconds; None: not measured yet."""
    shown = {name: plan.figures.get(f"floor_{name}") for name in FLOOR}
    return shown if shown["deliveries"] else None


def _leg_out(leg: dict[str, Any], sent: LegCounters | None) -> dict[str, Any]:
    names = leg.pop("sites")
    circuits = [{"site": site, "circuit": number} for site, number in leg.pop("circuits", ())]
    # The relay itself says in which way it fans out.
    leg.pop("fan_out", None)
    kept = sent or LegCounters("", 0, 0, Transport.UNICAST)
    return leg | {
        "sites": max(len(names), kept.sites),
        "site_names": list(names),
        "circuits": circuits,
        "products": kept.products,
        "bytes": kept.product_bytes,
        "egress_bytes": kept.egress_bytes,
        "repair_bytes": kept.repair_bytes,
        "control_bytes": kept.control_bytes,
        "unicast_equivalent_bytes": kept.unicast_equivalent_bytes,
    }


FLOOR = ("p50_ms", "p95_ms", "p99_ms", "hub_p50_ms", "slowest_site", "slowest_site_p50_ms", "deliveries")
"""Fields of a plan's figures that have names with `floor_`."""
