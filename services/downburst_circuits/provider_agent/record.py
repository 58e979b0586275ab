"""The stored state of a connection: enough to continue after the end of the process at any moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from downburst.foundation.errors import BadInput
from downburst_circuits.nsi.stp import Stp
from downburst_circuits.nsi.words import (
    LifecycleState,
    Operation,
    ProvisionState,
    ReservationState,
    States,
    Told,
)


@dataclass(frozen=True, slots=True)
class Requester:
    """The requester of a connection."""

    subject: str
    """Of its certificate, which alone decides about rights."""
    nsa: str
    """As it calls itself."""
    reply_to: str | None
    """Its address for notifications; None: it asks for them."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An acknowledged request that is not carried out so far."""

    operation: Operation
    correlation_id: str
    reply_to: str | None


@dataclass(frozen=True, slots=True)
class Service:
    """The unchangeable part of a reservation."""

    source: Stp
    """As asked for, then with the granted VLAN."""
    dest: Stp
    service_type: str
    global_id: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """The changeable part of a reservation, by version."""

    version: int
    capacity_mbps: int
    begin_us: int
    end_us: int | None
    """None: until it is terminated."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The data plane, as the requester was told last."""

    active: bool = False
    version: int = 0
    problem: str = ""
    """The last problem that it was told."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection of a requester."""

    connection_id: str
    requester: Requester
    service: Service
    asked: Terms | None
    """In negotiation: held, or to be held."""
    committed: Terms | None = None
    circuit: int | None = None
    """None: nothing was held so far."""
    held_until_us: int | None = None
    reservation: ReservationState = ReservationState.CHECKING
    provision: ProvisionState = ProvisionState.RELEASED
    lifecycle: LifecycleState = LifecycleState.CREATED
    plane: Plane = Plane()
    pending: tuple[Pending, ...] = ()
    """In the order in which they came."""
    changed_us: int = 0

    @property
    def states(self) -> States:
        """The four states as they are told."""
        return States(self.reservation, self.provision, self.lifecycle, self.plane.active, self.plane.version)

    @property
    def told(self) -> tuple[Told, ...]:
        """The criteria that are committed, and those that are held."""
        held = self.asked if self.reservation in _SHOWN else None
        return tuple(self.told_of(terms) for terms in (self.committed, held) if terms is not None)

    def told_of(self, terms: Terms) -> Told:
        """Terms as they are told."""
        service = self.service
        return Told(
            terms.version,
            terms.capacity_mbps,
            service.source,
            service.dest,
            terms.begin_us,
            terms.end_us,
            service.service_type,
        )


def as_json(connection: Connection) -> dict[str, Any]:
    """The record as JSON can hold it."""
    return {"format": FORMAT, "connection": _ADAPTER.dump_python(connection, mode="json")}


def from_json(stored: Mapping[str, Any]) -> Connection:
    """The record again; raises one sentence if it is of another version or damaged."""
    if stored.get("format") != FORMAT:
        raise BadInput(
            f"a connection of an NSI requester is stored in format {str(stored.get('format'))[:20]!r}, this version "
            f"reads {FORMAT}; run the version that wrote it until its circuits have ended"
        )
    try:
        return _ADAPTER.validate_python(stored.get("connection"))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"the stored connection of an NSI requester is damaged: {place}: {first['msg']}") from None


FORMAT = 1
_SHOWN = (ReservationState.HELD, ReservationState.COMMITTING)
_ADAPTER = TypeAdapter(Connection)
