"""The life of a circuit: one table of states and events, and the work due in each state.

requested ─► held ─► expired
    │          │
    ▼          ▼
    └──────► admitted ─► provisioning ─► verifying ─► active ◄─► degraded
                 │         ▲    │  ▲        │           │            │
        (by hand)▼         │    │  └failed ◄┘           └──► down ◄──┘
              waiting ─────┘    │            verifying ◄────────┘
                 ▲              ▼
                 └──── tearing-down ◄─ (tear down the path, in every state in which a node should hold it)

cancelled ◄─ cancelling ◄─ (cancel, in every state in which it may exist)
ended     ◄─ ending     ◄─ (its window has passed)
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from downburst.domain.circuits import (
    FINISHED,
    LEAVING,
    UPCOMING,
    WANTED,
    Circuit,
    CircuitCreation,
    CircuitState,
)
from downburst.foundation.clock import to_us
from downburst.foundation.errors import AlreadyThere, BadInput


class Happening(StrEnum):
    """The events that move a circuit from one state to another."""

    ADMIT = "admitted"
    HOLD = "held"
    COMMIT = "committed"
    EXPIRE = "expired"
    """It was held until this moment, and nobody committed it."""
    BEGIN = "begun"
    """Its window has begun."""
    OPEN = "opened"
    """Its window has begun, and its path is created by hand."""
    CREATE = "created"
    """Somebody asked for its path."""
    TEAR_DOWN = "torn-down"
    """Somebody asked for the removal of its path."""
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
    OVERRIDDEN = "overridden"
    """An administrator set the state against that of the probes, or gave it back to them."""
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


def in_state(circuit: Circuit, state: CircuitState) -> Circuit:
    """The circuit in a state; a hold ends with its state."""
    held_until = circuit.held_until if state is CircuitState.HELD else None
    return replace(circuit, state=state, held_until=held_until)


def work_in(state: CircuitState) -> Work | None:
    """The work that the state waits for."""
    return _WORK.get(state)


def due_by_window(circuit: Circuit, now_us: int) -> Happening | None:
    """The event due by the window at this moment.

    The begin counts once: setting the clock back afterwards does not affect a circuit that has begun.
    """
    if circuit.state is CircuitState.HELD:
        moment_us = next_moment_us(circuit)
        return Happening.EXPIRE if moment_us is not None and moment_us <= now_us else None
    if circuit.end is not None and to_us(circuit.end) <= now_us and circuit.state not in FINISHED | LEAVING:
        return Happening.OVER
    if circuit.state is CircuitState.ADMITTED and to_us(circuit.begin) <= now_us:
        return Happening.OPEN if circuit.creation is CircuitCreation.BY_HAND else Happening.BEGIN
    return None


def next_moment_us(circuit: Circuit) -> int | None:
    """The next begin or end of the window, or the end of the hold; None: there is none."""
    if circuit.state in FINISHED | LEAVING:
        return None
    if circuit.state is CircuitState.HELD:
        moments = (circuit.held_until, circuit.end)
        return min((to_us(moment) for moment in moments if moment is not None), default=None)
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


def check_committable(circuit: Circuit, now_us: int) -> None:
    """Raises one sentence if a hold is over, or if what it held is finished."""
    if circuit.state in FINISHED | LEAVING:
        raise AlreadyThere(f"circuit {circuit.number} is {circuit.state}, so it can't be committed; {_ANEW}")
    if due_by_window(circuit, now_us) is Happening.EXPIRE:
        raise AlreadyThere(f"the hold of circuit {circuit.number} is over, so it can't be committed; {_ANEW}")


def check_creatable(circuit: Circuit) -> None:
    """Raises one sentence if this is no moment to create a path."""
    name = f"the path of circuit {circuit.number}"
    if circuit.state in FINISHED | LEAVING:
        raise AlreadyThere(f"{name} can't be created, as that is {circuit.state}; {_ANEW}")
    if circuit.state in UPCOMING:
        raise AlreadyThere(
            f"{name} can't be created before its window begins, at {_moment(circuit)}; wait until then"
        )
    if circuit.state is CircuitState.TEARING_DOWN:
        raise AlreadyThere(f"{name} is being torn down; create it again when the circuit is waiting")


def check_has_path(circuit: Circuit) -> None:
    """Raises one sentence if there is no path to tear down."""
    if circuit.state in FINISHED | LEAVING | UPCOMING:
        raise AlreadyThere(
            f"circuit {circuit.number} is {circuit.state}, so it has no path to tear down; "
            "`downburst circuits cancel` gives a reservation back"
        )


def said_of(circuit: Circuit) -> str:
    """The state and its reason, for a sentence about a user of the circuit."""
    since = f" since {circuit.since:%Y-%m-%d %H:%M:%S} UTC" if circuit.since else ""
    return f"circuit {circuit.number} is {circuit.state}{since}" + (f": {circuit.reason}" if circuit.reason else "")


def _moment(circuit: Circuit) -> str:
    return f"{circuit.begin:%Y-%m-%d %H:%M:%S} UTC"


def _table() -> Mapping[tuple[CircuitState, Happening], CircuitState]:
    states, happens = CircuitState, Happening
    table = {
        (states.REQUESTED, happens.ADMIT): states.ADMITTED,
        (states.REQUESTED, happens.HOLD): states.HELD,
        (states.HELD, happens.COMMIT): states.ADMITTED,
        (states.HELD, happens.EXPIRE): states.EXPIRED,
        (states.ADMITTED, happens.BEGIN): states.PROVISIONING,
        (states.ADMITTED, happens.OPEN): states.WAITING,
        (states.WAITING, happens.CREATE): states.PROVISIONING,
        (states.ADMITTED, happens.OVER): states.ENDED,
        (states.WAITING, happens.OVER): states.ENDED,
        (states.TEARING_DOWN, happens.CLEARED): states.WAITING,
        (states.TEARING_DOWN, happens.CANCEL): states.CANCELLING,
        (states.TEARING_DOWN, happens.OVER): states.ENDING,
        (states.PROVISIONING, happens.BUILT): states.VERIFYING,
        (states.DOWN, happens.RETURNED): states.VERIFYING,
        (states.FAILED, happens.RETRY): states.PROVISIONING,
        (states.ENDING, happens.CLEARED): states.ENDED,
        (states.CANCELLING, happens.CLEARED): states.CANCELLED,
        (states.PROVISIONING, happens.BROKE): states.FAILED,
    }
    for state in (states.HELD, states.ADMITTED, states.WAITING):
        table[state, happens.MODIFIED] = state
        table[state, happens.CANCEL] = states.CANCELLED
    for state in (states.TEARING_DOWN, states.ENDING, states.CANCELLING):
        table[state, happens.BROKE] = state
        table[state, happens.WAITS] = state
    table[states.PROVISIONING, happens.WAITS] = states.PROVISIONING
    table[states.TEARING_DOWN, happens.MODIFIED] = states.TEARING_DOWN
    for state in WANTED:
        table[state, happens.CANCEL] = states.CANCELLING
        table[state, happens.OVER] = states.ENDING
        table[state, happens.TEAR_DOWN] = states.TEARING_DOWN
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
    CircuitState.TEARING_DOWN: Work.CLEAR,
    CircuitState.ENDING: Work.CLEAR,
    CircuitState.CANCELLING: Work.CLEAR,
}
_ANEW = "reserve it anew with `downburst circuits add`, or clone it"
