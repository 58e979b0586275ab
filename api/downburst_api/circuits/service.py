"""Reads circuits for answers, and applies changes to ports."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

from fastapi import Response

from downburst.domain.circuits import FINISHED, UPCOMING, Circuit, CircuitAnswer, CircuitState, Measured, Port
from downburst.foundation.errors import BadInput
from downburst.ledger import Transaction
from downburst.ledger.repositories.circuits import Revision, Which
from downburst_api.circuits.icalendar import calendar_text
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


async def subscribed(hub: Runtime, *, site: str | None, port: str | None) -> str:
    """The calendar of open circuits, and of those that finished lately."""
    since = hub.clock.now() - FINISHED_SHOWN
    found, revisions = await hub.ledger.read(lambda tx: _shown_in_calendars(tx, site, port, since))
    name = f"Circuits of {hub.settings.name}" + "".join(f", {one}" for one in (site, port) if one)
    return await asyncio.to_thread(calendar_text, name, found, revisions)


def _shown_in_calendars(
    tx: Transaction, site: str | None, port: str | None, since: datetime
) -> tuple[list[Circuit], dict[int, Revision]]:
    unfinished = [one for one in CircuitState if one not in FINISHED]
    found = tx.circuits.newest(Which(unfinished, site, port), limit=MOST_SHOWN)
    finished = tx.circuits.newest(Which(list(FINISHED), site, port), limit=MOST_SHOWN)
    found += [one for one in finished if one.since is not None and one.since >= since]
    return found, tx.circuits.revisions([one.number for one in found])


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


FINISHED_SHOWN = timedelta(days=30)
"""Programs that keep vanished events learn of cancelled ones that long."""
MOST_SHOWN = 5_000
