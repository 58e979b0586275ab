"""Reads circuits for answers, and applies changes to ports."""

from dataclasses import replace

from fastapi import Response

from downburst.domain.circuits import UPCOMING, CircuitAnswer, Measured, Port
from downburst.foundation.errors import BadInput
from downburst.ledger import Transaction
from downburst.ledger.repositories.circuits import Which
from downburst_api.circuits.shapes import circuit_out
from downburst_api.http.pagination import NewestPage
from downburst_api.runtime import Runtime
from downburst_contract import circuits as shapes
from downburst_contract.base import members


async def answered(hub: Runtime, answer: CircuitAnswer, response: Response | None = None) -> shapes.CircuitAnswered:
    """The answer to a request; nothing new was made by a dry run, or if the circuit existed already."""
    if response is not None and not answer.done:
        response.status_code = 200
    circuit, measured = answer.circuit, list[Measured]()
    if circuit.state not in UPCOMING:
        measured = await hub.ledger.read(lambda tx: tx.circuits.measurements([circuit.number]))
    return shapes.CircuitAnswered(**circuit_out(circuit, measured, hub.live), done=answer.done)


def listed(hub: Runtime, tx: Transaction, which: Which, page: NewestPage) -> list[shapes.Circuit]:
    """A page of circuits, and one more to show whether another page follows."""
    found = tx.circuits.newest(which, before=page.before, limit=page.to_read)
    measured = tx.circuits.measurements([circuit.number for circuit in found])
    return [shapes.Circuit(**circuit_out(circuit, measured, hub.live)) for circuit in found]


def whole(hub: Runtime, tx: Transaction, number: int) -> shapes.CircuitWhole:
    """One circuit with its history and measurements."""
    circuit = tx.circuits.one(number)
    events = [shapes.CircuitEvent(**members(event, without=("circuit",))) for event in tx.circuits.events(number)]
    return shapes.CircuitWhole(**circuit_out(circuit, tx.circuits.measurements([number]), hub.live), events=events)


async def check_provider(hub: Runtime, wanted: shapes.CircuitNew) -> None:
    """Refuses a provider that has no record."""
    name = wanted.provider
    if name is not None:
        await hub.ledger.read(lambda tx: tx.planning.providers.one(name))


def changed_port(port: Port, wanted: shapes.PortChange) -> Port:
    """The port with the client's changes."""
    given = wanted.given()
    if not given:
        raise BadInput("nothing to change was given; give a rate, port rate, interface, underlay, stp or tags")
    return replace(port, **given)
