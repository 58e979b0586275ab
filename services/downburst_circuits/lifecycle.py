"""The life of a circuit: one table of states and happenings, and what is to be done next in each state.

requested ─► admitted ─► provisioning ─► verifying ─► active ◄─► degraded
                 │            ▲  │           │           │            │
                 │            │  └──► failed ◄┘          └──► down ◄──┘
                 │            └─────────┘                       │
                 │            verifying ◄───────────────────────┘
                 ▼
cancelled ◄─ cancelling ◄─ (cancel, in every state in which it may stand)
ended     ◄─ ending     ◄─ (its window has passed)
"""

from collections.abc import Mapping
from enum import StrEnum

from downburst.domain.circuits import FINISHED, LEAVING, WANTED, Circuit, CircuitState
from downburst.foundation.clock import to_us
from downburst.foundation.errors import BadInput


class Happening(StrEnum):
    """What moves a circuit from one state to another."""

    ADMIT = "admitted"
    BEGIN = "begun"
    """Its window has begun."""
    BUILT = "built"
    BROKE = "failed"
    """A step of making or verifying it failed."""
    PASSED = "verified"
    """Probes found what was reserved."""
    FELL_SHORT = "degraded"
    LOST = "down"
    """Nothing gets through any more."""
    RETURNED = "returned"
    RETRY = "retried"
    REBUILD = "rebuilt"
    """The node has it no longer: it is made again."""
    MODIFIED = "modified"
    CANCEL = "cancelled"
    OVER = "over"
    """Its window has passed."""
    CLEARED = "cleared"
    """Nothing of it is left."""


class Work(StrEnum):
    """What is to be done for a circuit."""

    BUILD = "build"
    VERIFY = "verify"
    CLEAR = "clear"


def after(state: CircuitState, happening: Happening) -> CircuitState | None:
    """The state that follows; None where the happening means nothing in this one."""
    return TABLE.get((state, happening))


def work_in(state: CircuitState) -> Work | None:
    """What the state waits for."""
    return _WORK.get(state)


def due_by_window(circuit: Circuit, now_us: int) -> Happening | None:
    """What the window demands at this moment.

    The begin counts once: a clock that is set back afterwards takes nothing away from a circuit that has begun.
    """
    if circuit.end is not None and to_us(circuit.end) <= now_us and circuit.state not in FINISHED | LEAVING:
        return Happening.OVER
    if circuit.state is CircuitState.ADMITTED and to_us(circuit.begin) <= now_us:
        return Happening.BEGIN
    return None


def next_moment_us(circuit: Circuit) -> int | None:
    """When the window demands something next; None: never."""
    if circuit.state in FINISHED | LEAVING:
        return None
    if circuit.state is CircuitState.ADMITTED:
        return to_us(circuit.begin)
    return None if circuit.end is None else to_us(circuit.end)


def check_cancellable(circuit: Circuit) -> None:
    """One sentence if there is nothing to cancel."""
    if circuit.state in FINISHED:
        raise BadInput(
            f"circuit {circuit.number} is {circuit.state} already; `downburst circuits clone {circuit.number}` "
            "creates another one like it"
        )


def check_modifiable(circuit: Circuit) -> None:
    """One sentence if it is too late to change anything."""
    if circuit.state in FINISHED | LEAVING:
        raise BadInput(
            f"circuit {circuit.number} is {circuit.state}, so it can't be changed; "
            f"`downburst circuits clone {circuit.number}` creates another one like it"
        )


def said_of(circuit: Circuit) -> str:
    """The state and its reason, for a sentence of something that wanted to use the circuit."""
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
