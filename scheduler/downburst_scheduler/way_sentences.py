"""The reason of a site's way in one sentence with figures; unknown values are named."""

import math

from downburst.domain.relays import CoreCircuit
from downburst.domain.tcp.rates import CongestionControl
from downburst_scheduler.figures.wording import duration, megabits
from downburst_scheduler.models.ways import DirectWay, Priced, RelayWay, Segment
from downburst_scheduler.ways import DIRECT, Chain, WayBecause, WayDecision, WayQuestion


def way_reason(question: WayQuestion, decision: WayDecision) -> str:
    """The reason why the site's session goes as it goes."""
    parts = [f"{named(decision.chain)}: {_main(question, decision)}", _held(question, decision)]
    if question.measured_bps is not None and decision.chain != DIRECT:
        parts.append(f"measured {megabits(question.measured_bps)} since")
    if question.shut is not None and decision.because is not WayBecause.NO_RELAY:
        parts.append(question.shut)
    return "; ".join(part for part in parts if part)


def named(chain: Chain, over: CoreCircuit | None = None) -> str:
    """A way for people: `by relay campus`, `by relays campus and core over circuit 7`, or `direct`."""
    if chain == DIRECT:
        return "direct"
    circuit = f" over circuit {over.circuit}" if over is not None else ""
    return f"by relay {chain[0]}" if len(chain) == 1 else f"by relays {' and '.join(chain)}{circuit}"


def _main(question: WayQuestion, decision: WayDecision) -> str:
    if decision.because is WayBecause.NO_RELAY:
        return question.shut or "no relay is before the site"
    if decision.because is WayBecause.UNKNOWN:
        return _unknown(question)
    if decision.because is WayBecause.GONE:
        return f"{_relays(decision.left or DIRECT)} can't be used any more"
    if decision.because is WayBecause.WORSE:
        return _worse(question, decision)
    return _compared(question, decision)


def _compared(question: WayQuestion, decision: WayDecision) -> str:
    direct = f"{_rate(decision.direct.rate_bps)} by the direct way ({_direct(question.direct, decision.direct)})"
    if decision.chain != DIRECT:
        is_new = decision.memory.chosen_at_s == question.now_s
        way = next((way for way, _ in decision.priced if is_new and way.chain == decision.chain), None)
        return f"{_rate(decision.predicted_bps)} expected{_path(way)}, against {direct}"
    found = next((way for way, price in decision.priced if price.rate_bps is not None), None)
    if found is None:
        return direct
    return f"{direct}, and {_relays(found.chain)} would bring {_rate(decision.price_of(found.chain))}{_path(found)}"


def _path(way: RelayWay | None) -> str:
    return f" ({_segments(way)})" if way is not None else ""


def _worse(question: WayQuestion, decision: WayDecision) -> str:
    brought = megabits(question.measured_bps or 0.0)
    rest = decision.memory.rests[-1]
    wait = _span(rest.until_s - question.now_s)
    return (
        f"{_relays(rest.chain)} brought {brought}, less than the direct way's {_rate(decision.direct.rate_bps)}, "
        f"and is tried again after {wait}"
    )


def _unknown(question: WayQuestion) -> str:
    direct = question.direct.segment
    if direct.round_trip_s is None or direct.loss is None:
        missing = "loss" if direct.round_trip_s is not None else "round trip"
        return f"the {missing} of the direct way is not known yet, so no relay can be compared"
    names = ", ".join(sorted({way.chain[-1] for way in question.ways}))
    return f"the round trip between hub and relay {names} is not known yet"


def _direct(way: DirectWay, price: Priced) -> str:
    told = [_segment(way.segment)]
    if way.measured_bps is not None:
        told.append("measured")
    else:
        told.append("1 connection" if price.connections == 1 else f"{price.connections} connections")
    if way.age_s >= TELLING_AGE_S:
        told.append(f"{_span(way.age_s)} ago")
    return ", ".join(told)


def _segments(way: RelayWay) -> str:
    ends = ["the hub", *(f"relay {name}" for name in reversed(way.chain)), "the site"]
    told = [f"{_segment(one)} to {end}" for one, end in zip(way.segments, ends[1:], strict=True)]
    return ", ".join(told) + (" by estimate" if way.estimated else "")


def _segment(segment: Segment) -> str:
    away = "an unknown round trip" if segment.round_trip_s is None else duration(segment.round_trip_s * 1e3)
    return f"{away}, {_loss(segment)}, {segment.congestion}"


def _loss(segment: Segment) -> str:
    if segment.congestion is CongestionControl.BBR:
        return "loss without effect"
    if segment.loss is None or segment.assumed_clean:
        return "loss not known and counted as none" if segment.assumed_clean else "loss not known"
    return f"{segment.loss:.2%} loss"


def _held(question: WayQuestion, decision: WayDecision) -> str:
    favourite, rules = decision.memory.favourite, question.rules
    if favourite is None:
        return ""
    if decision.because is WayBecause.WOULD:
        return f"dry run: the site would go {named(favourite)}"
    if decision.memory.agreeing < rules.agreeing_windows:
        agreed = f"{decision.memory.agreeing} of {rules.agreeing_windows} required checks"
        return f"{_the_way(favourite)} is preferred in {agreed}"
    return f"{_the_way(favourite)} follows when the last change is {_span(rules.dwell_s)} ago"


def _the_way(chain: Chain) -> str:
    return "the direct way" if chain == DIRECT else f"the way {named(chain)}"


def _relays(chain: Chain) -> str:
    return f"relay {chain[0]}" if len(chain) == 1 else f"the chain of relays {' and '.join(chain)}"


def _span(seconds: float) -> str:
    if seconds < TEN_MINUTES_S:
        return duration(seconds * 1e3)
    return f"{seconds / 60:.0f} min" if seconds < TWO_HOURS_S else f"{seconds / 3_600:.0f} h"


def _rate(rate_bps: float | None) -> str:
    if rate_bps is None:
        return "an unknown rate"
    return "a rate without a known limit" if math.isinf(rate_bps) else megabits(rate_bps)


TELLING_AGE_S = 60.0
TEN_MINUTES_S, TWO_HOURS_S = 600, 7_200
