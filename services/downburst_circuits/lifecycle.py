"""The life of a circuit: one table of states and events, and the work due in each state.

requested ─► admitted ─► provisioning ─► verifying ─► active ◄─► degraded
                 │            ▲  │           │           │            │
                 │            │  └──► failed ◄┘          └──► down ◄──┘
                 │            └─────────┘                       │
                 │            verifying ◄───────────────────────┘
                 ▼
cancelled ◄─ cancelling ◄─ (cancel, in every state in which it may exist)
ended     ◄─ ending     ◄─ (its window has passed)
"""

from collections.abc import Mapping
from enum import StrEnum

from downburst.domain.circuits import FINISHED, LEAVING, WANTED, Circuit, CircuitState
from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput


class Happening(StrEnum):
    """The events that move a circuit from one state to another."""

    ADMIT = "admitted"
    BEGIN = "begun"
    """Its window has begun."""
    BUILT = "built"
    WAITS = "waiting"
    """Its maker has neither done nor refused the step so far."""
    BROKE = "failed"
    """A step of building or verifying it failed."""
    PASSED = "verified"
    """Probes found the reserved rate."""
    FELL_SHORT = "degraded"
    LOST = "down"
    """Nothing gets through."""
    RETURNED = "returned"
    RETRY = "retried"
    REBUILD = "rebuilt"
    """The node has lost it: it is built again."""
    MODIFIED = "modified"
    CANCEL = "cancelled"
    OVER = "over"
    """Its window has passed."""
    CLEARED = "cleared"
    """All of it is removed."""


class Work(StrEnum):
    """The work on a circuit."""

    BUILD = "build"
    VERIFY = "verify"
    CLEAR = "clear"


def after(state: CircuitState, happening: Happening) -> CircuitState | None:
    """The state that follows; None if the event has no effect in this one."""
    return TABLE.get((state, happening))


def work_in(state: CircuitState) -> Work | None:
    """The work that the state waits for."""
    return _WORK.get(state)


def due_by_window(circuit: Circuit, now_us: int) -> Happening | None:
    """The event due by the window at this moment.

    The begin counts once: setting the clock back afterwards does not affect a circuit that has begun.
    """
    if circuit.end is not None and to_us(circuit.end) <= now_us and circuit.state not in FINISHED | LEAVING:
        return Happening.OVER
    if circuit.state is CircuitState.ADMITTED and to_us(circuit.begin) <= now_us:
        return Happening.BEGIN
    return None


def next_moment_us(circuit: Circuit) -> int | None:
    """The window's next begin or end; None: there is none."""
    if circuit.state in FINISHED | LEAVING:
        return None
    if circuit.state is CircuitState.ADMITTED:
        return to_us(circuit.begin)
    return None if circuit.end is None else to_us(circuit.end)


def check_cancellable(circuit: Circuit) -> None:
    """Raises one sentence if there is nothing to cancel."""
    if circuit.state in FINISHED:
        raise BadInput(
            f"circuit {circuit.number} is {circuit.state} already; `downburst circuits clone {circuit.number}` "
            "creates another one like it"
        )


def check_modifiable(circuit: Circuit) -> None:
    """Raises one sentence if it is too late for any change."""
    if circuit.state in FINISHED | LEAVING:
        raise BadInput(
            f"circuit {circuit.number} is {circuit.state}, so it can't be changed; "
            f"`downburst circuits clone {circuit.number}` creates another one like it"
        )


def said_of(circuit: Circuit) -> str:
    """The state and its reason, for a sentence about a user of the circuit."""
    since = f" since {circuit.since:%Y-%m-%d %H:%M:%S} UTC" if circuit.since else ""
    return f"circuit {circuit.number} is {circuit.state}{since}" + (f": {circuit.reason}" if circuit.reason else "")


def _table() -> Mapping[tuple[CircuitState, Happening], CircuitState]:
    states, happens = CircuitState, Happening
    table = {
        (states.REQUESTED, happens.ADMIT): states.ADMITTED,
        (states.ADMITTED, happens.BEGIN): states.PROVISIONING,
        (states.ADMITTED, happens.MODIFIED): states.ADMITTED,
        (states.ADMITTED, happens.CANCEL): states.CANCELLED,
        (states.ADMITTED, happens.OVER): states.ENDED,
        (states.PROVISIONING, happens.BUILT): states.VERIFYING,
        (states.DOWN, happens.RETURNED): states.VERIFYING,
        (states.FAILED, happens.RETRY): states.PROVISIONING,
        (states.ENDING, happens.CLEARED): states.ENDED,
        (states.CANCELLING, happens.CLEARED): states.CANCELLED,
        (states.ENDING, happens.BROKE): states.ENDING,
        (states.CANCELLING, happens.BROKE): states.CANCELLING,
        (states.PROVISIONING, happens.BROKE): states.FAILED,
    }
    for state in (states.PROVISIONING, states.ENDING, states.CANCELLING):
        table[state, happens.WAITS] = state
    for state in WANTED:
        table[state, happens.CANCEL] = states.CANCELLING
        table[state, happens.OVER] = states.ENDING
        table[state, happens.MODIFIED] = state
        table[state, happens.REBUILD] = states.PROVISIONING
    for state in (states.VERIFYING, states.ACTIVE, states.DEGRADED):
        table[state, happens.PASSED] = states.ACTIVE
        table[state, happens.FELL_SHORT] = states.DEGRADED
        table[state, happens.BROKE] = states.FAILED
        table[state, happens.LOST] = states.DOWN
    table[states.DOWN, happens.BROKE] = states.FAILED
    return table


TABLE = _table()
_WORK = {
    CircuitState.PROVISIONING: Work.BUILD,
    CircuitState.VERIFYING: Work.VERIFY,
    CircuitState.ENDING: Work.CLEAR,
    CircuitState.CANCELLING: Work.CLEAR,
}
