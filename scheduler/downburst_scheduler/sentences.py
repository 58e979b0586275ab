"""The reason of a plan in one sentence with figures, true to the decision it explains."""

from collections.abc import Iterable, Sequence

from downburst.domain.plans import NOT_CONSIDERED, Leg, Transport, leg_figure
from downburst.host.absent_transports import AbsentTransport
from downburst_scheduler.figures.traffic import TrafficStatistics
from downburst_scheduler.figures.wording import duration, megabits, sites_of
from downburst_scheduler.models.candidates import Evaluated
from downburst_scheduler.models.flips import Flip
from downburst_scheduler.models.parts import tunnels_of
from downburst_scheduler.planner import Because, Decision, Question

Figure = float | str | bool | None


def reason(question: Question, decision: Decision) -> str:
    """Why the feed goes as it goes."""
    parts = [f"{decision.transport}: {_main(question, decision)}"]
    multicast = decision.option(Transport.MULTICAST)
    if question.sites and not multicast.feasible and decision.because != Because.PIN_INFEASIBLE:
        parts.append(f"multicast is not possible: {multicast.reason}")
    parts += [_without_circuits(decision), question.mistrust or ""]
    return "; ".join(part for part in parts if part)


def _without_circuits(decision: Decision) -> str:
    static, dynamic = decision.option(Transport.STATIC_CIRCUIT), decision.option(Transport.DYNAMIC_CIRCUIT)
    if not static.parts and static.reason == NO_CIRCUITS and not dynamic.feasible:
        return f"static-circuit and dynamic-circuit are not available: {NO_CIRCUITS}, and {dynamic.reason}"
    reserved = "" if static.feasible else f"static-circuit is not possible: {static.reason}"
    return "; ".join(part for part in (reserved, _on_demand(decision, dynamic)) if part)


def _on_demand(decision: Decision, dynamic: Evaluated) -> str:
    """Circuits ordered for each train, beside the transport chosen."""
    if decision.transport == Transport.DYNAMIC_CIRCUIT or dynamic.reason == NONE_ON_DEMAND:
        return ""
    if not dynamic.feasible:
        return f"dynamic-circuit is not possible: {dynamic.reason}"
    if dynamic.outcome is None:
        return ""
    price, latency = megabits(dynamic.price_bps), duration(dynamic.quantile_ms(0.99))
    return f"dynamic-circuit would cost {price} with a predicted p99 of {latency}: {dynamic.reason}"


def swept_rates(decision: Decision) -> list[str]:
    """A sentence for each group with a pace that follows a probe of a member's path."""
    groups = [part for part in decision.chosen.groups if part.rate_bps]
    whose = "the group's pace" if len(groups) == 1 else "the pace of {} sites"
    return [
        f"{whose.format(len(part.sites))} is {megabits(part.rate_bps or 0.0)}, as {part.swept}"
        for part in groups
        if part.swept
    ]


def figures(question: Question, decision: Decision, traffic: TrafficStatistics) -> dict[str, Figure]:
    """What a plan rests on, by name; units are in the names."""
    shown: dict[str, Figure] = {
        "because": decision.because.value,
        "fan_out": question.sites,
        "objective_ms": question.situation.objective.latency_s * 1e3,
        "window_s": traffic.span_s,
        "products": traffic.products,
        "mean_bps": traffic.mean_bps,
        "silent_share": traffic.silent_share,
        "free_egress_bps": question.situation.egress_bps,
        "repair_share": question.situation.group_loss,
        "mistrusted": question.mistrust is not None,
        "dry_run": question.rules.dry_run,
        "changes_today": len(decision.memory.changed_at_s),
        "would_be": decision.favourite.transport.value
        if decision.because is Because.WOULD and decision.favourite
        else None,
    }
    for width, seen in traffic.widths.items():
        shown[f"peak_{width}s_bps"] = seen.peak_bps
        shown[f"peak_to_mean_{width}s"] = seen.peak_to_mean
        shown[f"dispersion_{width}s"] = seen.dispersion
    for option in decision.options:
        if option.outcome is not None:
            shown[f"{option.transport}_egress_bps"] = option.outcome.egress_bps
        shown |= _demand_figures(option)
    if decision.chosen.outcome is not None:
        for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("max_ms", 1.0)):
            shown[f"predicted_{name}"] = decision.chosen.quantile_ms(share)
    tunnels = tunnels_of(decision.chosen.parts)
    if tunnels.count:
        shown |= {"amt_tunnels": tunnels.count, "amt_egress_bps": tunnels.egress_bps}
    return shown | question.situation.floor.figures()


def _demand_figures(option: Evaluated) -> dict[str, Figure]:
    """Orders of circuits: the price is reserved bit/s x share of the time reserved x the offer's price."""
    if not option.demand or option.outcome is None:
        return {}
    ordered_bps = sum(terms.rate_bps for terms in option.demand)
    return {
        "on_demand_sites": len(option.demand),
        "on_demand_rate_bps": max(terms.rate_bps for terms in option.demand),
        "on_demand_setup_s": max(terms.setup_s for terms in option.demand),
        "on_demand_hold_s": max(terms.hold_s for terms in option.demand),
        "on_demand_reserved_share": option.outcome.reserved_bps / ordered_bps,
        "on_demand_reserved_bps": option.outcome.reserved_bps,
        "on_demand_price_bps": option.price_bps,
        "on_demand_p99_ms": option.quantile_ms(0.99),
    }


def leg_figures(decision: Decision, groups: Sequence[Leg]) -> dict[str, Figure]:
    """The predictions for each group, and its limit where the losses of its sites set the pace."""
    shown: dict[str, Figure] = {}
    chosen = decision.chosen
    for part, leg in zip(chosen.groups, groups, strict=False):
        if part.lossy and part.rate_bps:
            shown[leg_figure(leg.leg, "line_bps")] = part.rate_bps
        if part.outcome is not None:
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                own_ms = part.outcome.latencies.quantile_s(share) * 1e3 * chosen.calibration.at(share)
                shown[leg_figure(leg.leg, f"predicted_{name}_ms")] = own_ms + chosen.floor.at_ms(share)
    return shown


def absent_figures(absent: Iterable[AbsentTransport]) -> dict[str, Figure]:
    """The transports that are not considered, with the reason, as it is on the scheduler's host."""
    return {f"{NOT_CONSIDERED}{one.name}": one.reason for one in absent}


def flip_figures(flipped: Flip | None) -> dict[str, Figure]:
    """The one input whose change would flip the choice; an empty sentence says that none would."""
    if flipped is None:
        return {"flip": ""}
    return {
        "flip": f"it would be {flipped.sentence}",
        "flip_input": flipped.name,
        "flip_now": flipped.now,
        "flip_then": flipped.then,
    }


def _main(question: Question, decision: Decision) -> str:
    figures = _figures(question, decision)
    match decision.because:
        case Because.NO_SITES:
            said = "no site subscribes to the feed"
        case Because.NO_TRAFFIC:
            said = f"no traffic measured yet, {sites_of(question.sites)} to serve"
        case Because.QUIET:
            said = f"no product came {_since(question)}, so the choice stays"
        case Because.PINNED | Because.PIN_INFEASIBLE:
            said = _joined(_pinned(question, decision), figures)
        case Because.WAITING | Because.SPENT | Because.WOULD | Because.MISTRUSTED:
            said = _joined(figures, _held(question, decision))
        case Because.FALLBACK:
            left = decision.option(decision.left) if decision.left is not None else None
            said = _joined(
                f"fallback, {left.transport} is no longer possible ({left.reason})" if left else "", figures
            )
        case Because.LEAST_BAD:
            said = f"no possible transport is better by enough ({decision.chosen.reason}): {figures}"
        case _:
            said = figures
    return said


def _since(question: Question) -> str:
    span_s = question.arrivals.span_s
    return f"in the last {duration(span_s * 1e3)}" if span_s else "since the hub started"


def _pinned(question: Question, decision: Decision) -> str:
    pin = question.pin
    if pin is None:
        return ""
    if decision.because == Because.PINNED:
        return f"pinned by {pin.by}"
    wanted = decision.option(pin.transport)
    return f"pinned to {pin.transport} by {pin.by}, which is not possible ({wanted.reason}), so the choice stays"


def _figures(question: Question, decision: Decision) -> str:
    chosen = decision.chosen
    if chosen.outcome is None:
        return chosen.reason
    p99_ms, limit_ms = chosen.quantile_ms(0.99), question.situation.objective.latency_s * 1e3
    kept = "within the objective of" if p99_ms <= limit_ms else "over the objective of"
    latency = f"predicted p99 {duration(p99_ms)} {kept} {duration(limit_ms)}"
    return f"{_cost(question, decision)}, {latency}{_of_machines(question)}{_rest(chosen)}"


def _of_machines(question: Question) -> str:
    """Said where it counts: below a fiftieth of the objective it moves nothing."""
    floor_ms, limit_ms = question.situation.floor.p99_ms, question.situation.objective.latency_s * 1e3
    if floor_ms <= limit_ms * TELLING_SHARE_OF_OBJECTIVE:
        return ""
    alone = ", more than any transport can compensate" if floor_ms > limit_ms else ""
    return f" ({duration(floor_ms)} of it processing at hub and sites{alone})"


def _cost(question: Question, decision: Decision) -> str:
    unicast, multicast = decision.option(Transport.UNICAST), decision.option(Transport.MULTICAST)
    who = sites_of(question.sites)
    if unicast.outcome is None:
        return f"{who}"
    copies_bps = unicast.outcome.egress_bps
    if multicast.outcome is None:
        return f"{who} {'costs' if question.sites == 1 else 'cost'} {megabits(copies_bps)}"
    group_bps = multicast.outcome.egress_bps
    cost = f"{who} would cost {megabits(copies_bps)} by unicast and {megabits(group_bps)} by multicast"
    if group_bps < copies_bps:
        cost += f" ({copies_bps / group_bps:.1f} times less)"
    return cost + _why_not_cheaper(question, decision, multicast)


def _why_not_cheaper(question: Question, decision: Decision, multicast: Evaluated) -> str:
    """Unicast beside a group that sends less must say why."""
    unicast = decision.option(Transport.UNICAST)
    weighs = decision.because in (Because.CHEAPEST, Because.FASTEST) and multicast.feasible
    if not weighs or decision.transport != Transport.UNICAST:
        return ""
    if multicast.price_bps >= unicast.price_bps * (1 - question.rules.min_gain):
        reserve = megabits(question.arrivals.mean_bps)
        needed = f"{question.rules.min_gain:.0%}"
        return (
            f", where a group keeps {reserve} in reserve for a site that stops hearing it and so gains under {needed}"
        )
    return f" with a predicted p99 of {duration(multicast.quantile_ms(0.99))}"


def _held(question: Question, decision: Decision) -> str:
    if decision.favourite is None:
        return ""
    rules, memory = question.rules, decision.memory
    name = decision.favourite.transport
    if decision.because is Because.SPENT:
        spent = f"{len(memory.changed_at_s)} of {rules.changes_per_day}"
        return f"{name} is preferred, but {spent} changes of the day are used"
    if decision.because is Because.WOULD:
        return f"dry run: it would change to {name} ({decision.favourite.reason})"
    if decision.because is Because.MISTRUSTED:
        return f"{name} is preferred"
    if memory.agreeing < rules.agreeing_windows:
        return f"{name} preferred in {memory.agreeing} of {rules.agreeing_windows} required checks"
    return f"{name} is preferred and follows when the last change is {duration(rules.dwell_s * 1e3)} ago"


def _rest(chosen: Evaluated) -> str:
    if chosen.transport in (Transport.STATIC_CIRCUIT, Transport.DYNAMIC_CIRCUIT):
        return f", {chosen.reason}"
    several = len(chosen.groups) > 1 or bool(chosen.groups and chosen.unicast_sites)
    relayed = any(part.relay is not None or part.tunnels for part in chosen.groups)
    return f", {chosen.reason}" if several or relayed else ""


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


NO_CIRCUITS = "no circuit is reserved to its sites"
TELLING_SHARE_OF_OBJECTIVE = 0.02
"""Latencies under a fiftieth of the objective move no decision, whatever they are in proportion."""
NONE_ON_DEMAND = "no offer of circuits reaches its sites"
