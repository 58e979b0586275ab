"""The next step of one feed's circuit to one site, from facts alone: waiting, ordered, up, releasing, waiting.

The facts are in the ledger, so a scheduler that starts again anywhere continues with the same step. A circuit carries
the feed beside the routed path: it is joined when it is up, and left before it is cancelled.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from downburst.domain.circuits import FINISHED, LEAVING, Circuit, CircuitState
from downburst.domain.ordering import DemandOrder, OrderStep
from downburst_scheduler.demand.trains import Need, held_s
from downburst_scheduler.models.demand.terms import DemandTerms


class Act(StrEnum):
    """The kinds of steps."""

    ORDER = "order"
    """Store an order."""
    SEND = "send"
    """Request its circuit; a repeated request gets the first circuit."""
    RIDE = "ride"
    """The circuit is up: the feed may use it."""
    EXTEND = "extend"
    """Move the end of its window."""
    STAY = "stay"
    """The feed needs the circuit again before it was cancelled."""
    LEAVE = "leave"
    """The feed goes back to the routed path."""
    CANCEL = "cancel"
    END = "end"
    """Store the outcome."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step, with the end of the window or the sentence that it sets."""

    act: Act
    sentence: str = ""
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that decides the next step."""

    now: datetime
    order: DemandOrder | None
    """The open order."""
    circuit: Circuit | None
    """The circuit of that order; None: none is known."""
    need: Need | None
    terms: DemandTerms | None
    """None: the plan wants no circuit for this site."""
    setup_s: float
    """The set-up time to expect: the p90 of the last orders."""
    least_hold_s: float = 0.0
    rides: bool = False
    """True while the node may use the circuit for the feed."""


def next_step(facts: Facts) -> Step | None:
    """The step to take now; None: wait."""
    if facts.order is None:
        is_wanted = facts.need is not None and facts.terms is not None
        return Step(Act.ORDER, until=first_end(facts)) if is_wanted else None
    match facts.order.step:
        case OrderStep.ORDERED:
            return _ordered(facts, facts.order)
        case OrderStep.UP:
            return _up(facts, facts.order)
        case _:
            return _releasing(facts, facts.order)


def first_end(facts: Facts) -> datetime:
    """The end of the first window: a late set-up, the hold time and a margin to extend in."""
    hold_s = held_s(facts.terms) if facts.terms is not None else 0.0
    return facts.now + timedelta(seconds=late_s(facts.setup_s) + max(hold_s, facts.least_hold_s) + MARGIN_S)


def late_s(setup_s: float) -> float:
    """The time after which a circuit is late."""
    return max(setup_s * LATE, LATE_LEAST_S)


def _ordered(facts: Facts, order: DemandOrder) -> Step | None:
    circuit, age_s = facts.circuit, (facts.now - order.times.ordered_at).total_seconds()
    if circuit is None and facts.need is not None and facts.terms is not None and age_s < late_s(facts.setup_s):
        return Step(Act.SEND)
    if circuit is not None and circuit.usable_state is CircuitState.ACTIVE and _is_wanted(facts, order):
        return Step(Act.RIDE)
    why = _lost(circuit) if circuit is not None else None
    if why is not None:
        return Step(Act.LEAVE, why)
    if age_s >= late_s(facts.setup_s):
        return Step(Act.LEAVE, f"the circuit is late: it was not up after {age_s:.3g} s{_said(circuit)}")
    return None if _is_wanted(facts, order) else Step(Act.LEAVE)


def _up(facts: Facts, order: DemandOrder) -> Step | None:
    circuit = facts.circuit
    why = _lost(circuit) if circuit is not None else "the circuit died: it is no longer known"
    if why is None and circuit is not None and circuit.usable_state is not CircuitState.ACTIVE:
        why = f"the circuit died: it is {circuit.usable_state}{_said(circuit)}"
    if why is not None:
        return Step(Act.LEAVE, why)
    if not _is_wanted(facts, order):
        return Step(Act.LEAVE)
    left_s = _left_s(order, circuit, facts.now)
    hold_s = held_s(facts.terms) if facts.terms is not None else 0.0
    if left_s <= LEAVE_BEFORE_S:
        return Step(Act.LEAVE)
    if left_s < MARGIN_S / 2:
        return Step(Act.EXTEND, until=facts.now + timedelta(seconds=hold_s + MARGIN_S))
    return None


def _releasing(facts: Facts, order: DemandOrder) -> Step | None:
    circuit = facts.circuit
    if circuit is None or circuit.state in FINISHED:
        return Step(Act.END)
    if circuit.state in LEAVING:
        return None
    was_well = order.times.up_at is not None and not order.outcome and circuit.usable_state is CircuitState.ACTIVE
    has_time = _left_s(order, circuit, facts.now) > MARGIN_S / 4
    if was_well and has_time and facts.need is not None and facts.terms is not None:
        return Step(Act.STAY)
    released_at = order.times.released_at or facts.now
    if facts.rides and facts.now < released_at + MOVE_LIMIT:
        return None
    return Step(Act.CANCEL)


def _left_s(order: DemandOrder, circuit: Circuit | None, now: datetime) -> float:
    """The rest of the window: an extension is stored before it is sent, so the circuit may end earlier."""
    end = circuit.end if circuit is not None and circuit.end is not None else order.times.until
    return (min(end, order.times.until) - now).total_seconds()


def _is_wanted(facts: Facts, order: DemandOrder) -> bool:
    """True while a train needs the circuit, or its smallest hold is not over."""
    if facts.terms is None:
        return False
    held = (facts.now - order.times.ordered_at).total_seconds() < facts.least_hold_s
    return facts.need is not None or held


def _lost(circuit: Circuit) -> str | None:
    """The reason why a circuit can't be used any more; None if it can, or may be soon."""
    state = circuit.usable_state
    match state:
        case CircuitState.DEGRADED:
            return f"the circuit is short{_said(circuit)}"
        case CircuitState.FAILED:
            return f"the circuit was not made{_said(circuit)}"
        case CircuitState.TEARING_DOWN | CircuitState.WAITING:
            return f"the path of the circuit was torn down: it is {state}{_said(circuit)}"
        case CircuitState.DOWN | CircuitState.ENDING | CircuitState.CANCELLING:
            return f"the circuit died: it is {state}{_said(circuit)}"
        case CircuitState.ENDED | CircuitState.CANCELLED | CircuitState.EXPIRED:
            return f"the circuit is {state}{_said(circuit)}"
        case _:
            return None


def _said(circuit: Circuit | None) -> str:
    return f": {circuit.usable_reason}" if circuit is not None and circuit.usable_reason else ""


LATE, LATE_LEAST_S = 3.0, 5.0
"""A set-up of three times the usual one is late, but the machines' own seconds are not judged."""
MARGIN_S = 60.0
"""The end of a window is moved when half of this is left."""
LEAVE_BEFORE_S = 3.0
"""A window that can't be extended is left before its end, so that the feed moves first."""
MOVE_LIMIT = timedelta(seconds=2)
"""The node falls back by itself if it is slower than this."""
