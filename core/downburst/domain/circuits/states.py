"""The states of circuits, and the words for the creation and the choice of their paths."""

from enum import StrEnum


class PathOrder(StrEnum):
    """The measure of paths; of equal ones, the one with fewer hops comes first."""

    SHORTEST = "shortest"
    """The least sum of costs."""
    FEWEST_HOPS = "fewest-hops"
    WIDEST = "widest"
    """The most free rate on the narrowest link, from the hub to the site."""


class CircuitCreation(StrEnum):
    """When the path of a circuit is created."""

    AUTOMATIC = "automatic"
    """At the begin of its window."""
    BY_HAND = "by-hand"
    """When somebody asks for it during the window."""


class CircuitState(StrEnum):
    """Where a circuit is in its life; `downburst_circuits.lifecycle` has the table."""

    REQUESTED = "requested"
    HELD = "held"
    """In the calendar until `Circuit.held_until`; a commit makes it a reservation."""
    ADMITTED = "admitted"
    """In the calendar; waits for its beginning."""
    WAITING = "waiting"
    """Its window runs, and no path is wanted until somebody creates it."""
    PROVISIONING = "provisioning"
    VERIFYING = "verifying"
    """It is set up; probes have to pass before it carries feeds."""
    ACTIVE = "active"
    DEGRADED = "degraded"
    """Less than 0.8 of the reserved rate was measured, or an end is away."""
    DOWN = "down"
    """It is set up, and nothing passes."""
    FAILED = "failed"
    """It can't be set up at the moment; retried during its window."""
    TEARING_DOWN = "tearing-down"
    """Its path is removed, and it waits afterwards."""
    ENDING = "ending"
    CANCELLING = "cancelling"
    ENDED = "ended"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """It was held and never committed."""


FINISHED = frozenset({CircuitState.ENDED, CircuitState.CANCELLED, CircuitState.EXPIRED})
UPCOMING = frozenset({CircuitState.REQUESTED, CircuitState.HELD, CircuitState.ADMITTED})
"""States before the begin of the window counts: nothing of the circuit exists outside the calendar."""
LEAVING = frozenset({CircuitState.ENDING, CircuitState.CANCELLING})
STANDING = frozenset({CircuitState.VERIFYING, CircuitState.ACTIVE, CircuitState.DEGRADED, CircuitState.DOWN})
"""States in which a node holds the circuit, as far as the hub knows."""
WANTED = STANDING | {CircuitState.PROVISIONING, CircuitState.FAILED}
"""States in which a node should hold it."""
