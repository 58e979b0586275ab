"""The reason of a plan in one sentence with figures, true to the decision it explains."""

from downburst.model import Transport
from downburst_scheduler.options import NO_CIRCUITS, NONE_ON_DEMAND, Option, megabits
from downburst_scheduler.planner import Because, Decision, Question
from downburst_scheduler.traffic import TrafficStatistics

Figure = float | str | bool | None


def reason(question: Question, decision: Decision) -> str:
    """Why the feed goes as it goes."""
    parts = [f"{decision.transport}: {_main(question, decision)}"]
    multicast = decision.option(Transport.MULTICAST)
    if question.sites and not multicast.feasible and decision.because != Because.PIN_INFEASIBLE:
        parts.append(f"multicast is not possible: {multicast.reason}")
    parts.append(_without_circuits(decision))
    parts = [part for part in parts if part]
    return "; ".join(parts)


def _without_circuits(decision: Decision) -> str:
    static = decision.option(Transport.STATIC_CIRCUIT)
    if static.feasible:
        return ""
    if static.reason == NO_CIRCUITS:
        return f"static-circuit and dynamic-circuit are not available: {NO_CIRCUITS}, and {NONE_ON_DEMAND}"
    return f"static-circuit is not possible: {static.reason}"


def figures(question: Question, decision: Decision, traffic: TrafficStatistics) -> dict[str, Figure]:
    """What a plan rests on, by name; units are in the names."""
    shown: dict[str, Figure] = {
        "because": decision.because.value,
        "fan_out": len(question.sites),
        "objective_ms": question.objective_ms,
        "window_s": traffic.span_s,
        "products": traffic.products,
        "mean_bps": traffic.mean_bps,
        "silent_share": traffic.silent_share,
        "free_egress_bps": question.hub.egress_bps,
        "repair_share": question.hub.repair_share,
    }
    for width, seen in traffic.widths.items():
        shown[f"peak_{width}s_bps"] = seen.peak_bps
        shown[f"peak_to_mean_{width}s"] = seen.peak_to_mean
        shown[f"dispersion_{width}s"] = seen.dispersion
    for option in decision.options:
        if option.prediction is not None:
            shown[f"{option.transport}_egress_bps"] = option.prediction.egress_bps
    predicted = decision.chosen.prediction
    if predicted is not None:
        for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms"):
            shown[f"predicted_{name}"] = getattr(predicted, name)
    return shown


def _main(question: Question, decision: Decision) -> str:
    figures = _figures(question, decision)
    match decision.because:
        case Because.NO_SITES:
            said = "no site subscribes to the feed"
        case Because.NO_TRAFFIC:
            said = f"no traffic measured yet, {_sites(len(question.sites))} to serve"
        case Because.QUIET:
            said = f"no product came {_since(question)}, so it stays as it was chosen"
        case Because.PINNED | Because.PIN_INFEASIBLE:
            said = _joined(_pinned(question, decision), figures)
        case Because.WAITING:
            said = _joined(figures, _waiting(question, decision))
        case Because.LEAST_BAD:
            said = f"no transport fits into the egress and this one needs least: {figures}"
        case _:
            said = figures
    return said


def _since(question: Question) -> str:
    span_s = question.arrivals.span_s
    return f"in the last {duration(span_s * 1e3)}" if span_s else "since the hub was started"


def _pinned(question: Question, decision: Decision) -> str:
    pin = question.pin
    if pin is None:
        return ""
    if decision.because == Because.PINNED:
        return f"pinned by {pin.by}"
    wanted = decision.option(pin.transport)
    return f"pinned to {pin.transport} by {pin.by}, which is not possible ({wanted.reason}), so it stays as it was"


def _figures(question: Question, decision: Decision) -> str:
    chosen = decision.chosen
    if chosen.prediction is None:
        return chosen.reason
    latency = f"predicted p99 {duration(chosen.p99_ms)} {_against(question, chosen)}"
    return f"{_cost(question, decision)}, {latency}{_rest(chosen)}"


def _cost(question: Question, decision: Decision) -> str:
    unicast, multicast = decision.option(Transport.UNICAST), decision.option(Transport.MULTICAST)
    who = _sites(len(question.sites))
    if unicast.prediction is None:
        return f"{who}"
    copies_bps = unicast.prediction.egress_bps
    if multicast.prediction is None:
        return f"{who} {'costs' if len(question.sites) == 1 else 'cost'} {megabits(copies_bps)}"
    group_bps = multicast.prediction.egress_bps
    cost = f"{who} would cost {megabits(copies_bps)} by unicast and {megabits(group_bps)} by multicast"
    if group_bps < copies_bps:
        cost += f" ({copies_bps / group_bps:.1f} times less)"
    return cost + _why_not_cheaper(question, decision, multicast)


def _why_not_cheaper(question: Question, decision: Decision, multicast: Option) -> str:
    """Unicast beside a group that sends less must say why."""
    unicast = decision.option(Transport.UNICAST)
    weighs = decision.because in (Because.CHEAPEST, Because.FASTEST) and multicast.feasible
    if not weighs or decision.transport != Transport.UNICAST or unicast.prediction is None:
        return ""
    if multicast.price_bps >= unicast.price_bps * (1 - question.rules.min_gain):
        reserve = megabits(question.arrivals.mean_bps)
        needed = f"{question.rules.min_gain:.0%}"
        return (
            f", where a group keeps {reserve} in reserve for a site that stops hearing it and so gains under {needed}"
        )
    return f" with a predicted p99 of {duration(multicast.p99_ms)}"


def _waiting(question: Question, decision: Decision) -> str:
    if decision.favourite is None:
        return ""
    rules, memory = question.rules, decision.memory
    name = decision.favourite.transport
    if memory.agreeing < rules.agreeing_windows:
        return f"{name} is favoured in {memory.agreeing} of {rules.agreeing_windows} looks in a row"
    return f"{name} is favoured and follows when the last change is {duration(rules.dwell_s * 1e3)} ago"


def _against(question: Question, chosen: Option) -> str:
    limit = duration(question.objective_ms)
    return (
        f"within the objective of {limit}"
        if chosen.p99_ms <= question.objective_ms
        else f"over the {limit} objective"
    )


def _rest(chosen: Option) -> str:
    if chosen.transport == Transport.STATIC_CIRCUIT:
        return f", {chosen.reason}"
    return f", {chosen.reason}" if chosen.transport == Transport.MULTICAST and chosen.unicast_sites else ""


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _sites(count: int) -> str:
    return "1 site" if count == 1 else f"{count} sites"


def duration(milliseconds: float) -> str:
    """A duration for people: milliseconds below 0.1 s, seconds above."""
    if milliseconds < 100:
        return f"{milliseconds:.3g} ms"
    seconds = milliseconds / 1e3
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.2f} s"
