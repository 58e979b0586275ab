"""The stored state of an order: enough to continue after the end of the process at any moment.

It is stored before each request and after each answer. `as_json` and `from_json` are exact inverses; a record of
another version is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.refusals import Problem
from downburst_circuits.nsi.words import Criteria, Operation, States


class Goal(StrEnum):
    """The wish for a reservation."""

    SERVE = "serve"
    END = "end"


class Stage(StrEnum):
    """The negotiation of criteria, the first ones or changed ones."""

    WANTED = "wanted"
    """To be asked for."""
    ASKED = "asked"
    """The request was sent, its outcome is unknown."""
    CHECKING = "checking"
    """The provider has it in hand."""
    HELD = "held"
    """Confirmed as asked; to be committed."""
    COMMITTING = "committing"
    """The commit was sent."""
    GIVEN_UP = "given-up"
    """Confirmed differently, or failed; to be removed at the provider."""


class Life(StrEnum):
    """The progress of a reservation."""

    RESERVING = "reserving"
    COMMITTED = "committed"
    PROVISIONED = "provisioned"
    RELEASED = "released"
    """On the way to its end."""
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Sent:
    """The last request of a reservation."""

    operation: Operation
    correlation_id: str
    at_us: int
    tries: int = 1
    """Of the same operation, one after the other."""
    acknowledged: bool = False
    answered: bool = False
    """False: nothing has come back so far; the process may have ended in between."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Criteria in negotiation."""

    criteria: Criteria
    version: int
    stage: Stage = Stage.WANTED
    correlation_id: str = ""
    """Of the reserve."""
    asked_at_us: int = 0
    granted: Criteria | None = None
    """As confirmed and equal to the request."""
    granted_version: int | None = None
    """As the provider counts: OpenNSA tells 0 for every version."""


@dataclass(frozen=True, slots=True)
class Strays:
    """Further connections with the global id of a reservation, made by requests that were late; to be removed."""

    connection_ids: tuple[str, ...] = ()
    sent_at_us: int = 0
    """The moment of the last request to remove one."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reservation at the provider."""

    global_id: str
    """Ours, a urn:uuid: the key to it when the answer to the reserve was lost."""
    goal: Goal = Goal.SERVE
    life: Life = Life.RESERVING
    ask: Ask | None = None
    connection_id: str | None = None
    granted: Criteria | None = None
    """As committed."""
    committed_at_us: int = 0
    version: int = 0
    """The committed one, by our count."""
    commit_is_sure: bool = False
    """False: the state after the commit was the same as after an expired hold."""
    sent: Sent | None = None
    seen: States | None = None
    missing_since_us: int | None = None
    strays: Strays = Strays()
    problem: Problem | None = None
    """The reason of its end."""
    change_problem: Problem | None = None
    """The reason why the last change was not made; what was in service stayed."""


@dataclass(frozen=True, slots=True)
class Order:
    """A circuit ordered from a provider."""

    circuit: int
    provider: str
    description: str
    criteria: Criteria
    """As asked for in the beginning, with all VLANs that would do: a second reservation needs others."""
    serving: Reservation
    replacing: Reservation | None = None
    """A second reservation with changed criteria, for a provider that changes none."""
    retired: tuple[Reservation, ...] = ()
    """Former ones, until they are gone at the provider."""
    change_problem: Problem | None = None
    """The reason why the last replacement was not made."""
    event: str = ""
    """The provider's words about the last error in service, such as a failed activation."""
    holds: bool = False
    """True: the provider holds it, and its circuit is not committed so far."""

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """All of them."""
        return (self.serving, *((self.replacing,) if self.replacing else ()), *self.retired)


def as_json(order: Order) -> dict[str, Any]:
    """The record as JSON can hold it."""
    return {"format": FORMAT, "order": _ADAPTER.dump_python(order, mode="json")}


def from_json(stored: Mapping[str, Any]) -> Order:
    """The record again; raises one sentence if it is of another version or damaged."""
    if stored.get("format") != FORMAT:
        raise BadInput(
            f"an order at an NSI provider is stored in format {str(stored.get('format'))[:20]!r}, this version reads "
            f"{FORMAT}; run the version that wrote it until its circuits have ended"
        )
    try:
        return _ADAPTER.validate_python(stored.get("order"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"the stored order at an NSI provider is damaged: {place}: {first['msg']}") from None


FORMAT = 1
_ADAPTER = TypeAdapter(Order)
