"""Routes of ports and circuits."""

from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Query, Response

from downburst.circuits import FINISHED, CircuitAnswer, CircuitState, Measured
from downburst.ledger import Book
from downburst.ledger.circuits import Which
from downburst.moments import coming_moment
from downburst_api.circuit_schemas import (
    CircuitClone,
    CircuitModify,
    CircuitNew,
    PortChange,
    PortNew,
    changed_port,
    circuit_out,
    event_out,
    port_out,
)
from downburst_api.pages import NewestPage, NewestPaged, Paged
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(prefix="/v1", tags=["circuits"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]
DryRun = Annotated[bool, Query(description="Dry run: only show the result.")]
By = Annotated[str, Query(min_length=1, max_length=100)]
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The port has no capacity left in the window; `circuits` lists the reservations."}
}


@router.get("/ports")
async def list_ports(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Every port where circuits may end, by name."""
    return page.of(map(port_out, await hub.ledger.read(lambda book: book.ports.all())), "port")


@router.post("/ports", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_port(hub: Hub, wanted: PortNew) -> dict[str, Any]:
    """Creates a port."""
    return port_out(await hub.circuits.add_port(wanted.to_model()))


@router.get("/ports/{port}")
async def show_port(hub: Hub, port: str) -> dict[str, Any]:
    """One port."""
    return port_out(await hub.ledger.read(lambda book: book.ports.one(port)))


@router.patch("/ports/{port}", responses=_CONFLICT)
async def change_port(hub: Hub, port: str, wanted: PortChange) -> dict[str, Any]:
    """Changes the given properties of a port, unless circuits on it would lose reserved capacity."""
    before = await hub.ledger.read(lambda book: book.ports.one(port))
    return port_out(await hub.circuits.change_port(changed_port(before, wanted)))


@router.delete("/ports/{port}", status_code=204, responses={409: {"description": "Circuits need it."}})
async def remove_port(hub: Hub, port: str) -> None:
    """Removes a port that no circuit needs."""
    await hub.circuits.remove_port(port)


@router.get("/circuits")
async def list_circuits(
    hub: Hub,
    state: Annotated[list[CircuitState] | None, Query()] = None,
    *,
    site: str | None = None,
    port: str | None = None,
    finished: bool = False,
    page: NewestPaged,
) -> list[dict[str, Any]]:
    """The newest circuits, newest first; ended and cancelled ones only on request."""
    open_states = [one for one in CircuitState if finished or one not in FINISHED]
    which = Which(states=state or open_states, site=site, port=port)
    return page.of(await hub.ledger.read(lambda book: _listed(hub, book, which, page)), "circuit")


@router.post(
    "/circuits", status_code=201, responses={**_CONFLICT, 200: {"description": "A dry run, or created before."}}
)
async def request_circuit(
    hub: Hub, wanted: CircuitNew, response: Response, *, dry_run: DryRun = False
) -> dict[str, Any]:
    """Reserves a circuit; a refusal has the reason and the circuits in conflict."""
    circuit = wanted.to_model(hub.clock.now(), wanted.request_id or uuid4().hex)
    return await _answer(hub, await hub.circuits.request(circuit, dry_run=dry_run), response)


@router.get("/circuits/{circuit}")
async def show_circuit(hub: Hub, circuit: Number) -> dict[str, Any]:
    """One circuit with its history and measurements."""
    return await hub.ledger.read(lambda book: _whole(hub, book, circuit))


@router.patch("/circuits/{circuit}", responses=_CONFLICT)
async def modify_circuit(
    hub: Hub, circuit: Number, wanted: CircuitModify, *, dry_run: DryRun = False
) -> dict[str, Any]:
    """Changes rate, end or burst, together or not at all: a refusal leaves the circuit and its traffic unchanged."""
    change = wanted.to_model(hub.clock.now())
    return await _answer(hub, await hub.circuits.modify(circuit, change, by=wanted.by, dry_run=dry_run))


@router.delete("/circuits/{circuit}")
async def cancel_circuit(
    hub: Hub, circuit: Number, *, by: By = "operator", dry_run: DryRun = False
) -> dict[str, Any]:
    """Cancels a circuit; its rate is free immediately, and its set-up is removed."""
    return await _answer(hub, await hub.circuits.cancel(circuit, by=by, dry_run=dry_run))


@router.post("/circuits/{circuit}/clone", status_code=201, responses=_CONFLICT)
async def clone_circuit(
    hub: Hub, circuit: Number, response: Response, wanted: CircuitClone | None = None, *, dry_run: DryRun = False
) -> dict[str, Any]:
    """Reserves another circuit like one, as long as it, from now or from `begin`."""
    clone = wanted or CircuitClone()
    answer = await hub.circuits.clone(
        circuit,
        request_id=clone.request_id or uuid4().hex,
        begin=coming_moment(clone.begin, hub.clock.now()),
        by=clone.by,
        dry_run=dry_run,
    )
    return await _answer(hub, answer, response)


@router.post("/circuits/{circuit}/measure", status_code=202)
async def measure_circuit(hub: Hub, circuit: Number) -> dict[str, Any]:
    """Measures a circuit now; the result is in `measurements` some seconds later."""
    measured = await hub.circuits.measure(circuit)
    return await hub.ledger.read(lambda book: _whole(hub, book, measured.number))


async def _answer(hub: Runtime, answer: CircuitAnswer, response: Response | None = None) -> dict[str, Any]:
    """What became of a request; nothing new was made where it was a dry run, or was made before."""
    if response is not None and not answer.done:
        response.status_code = 200
    circuit, measured = answer.circuit, list[Measured]()
    if circuit.state not in NEVER_STOOD:
        measured = await hub.ledger.read(lambda book: book.circuits.measurements([circuit.number]))
    return {**circuit_out(circuit, measured, hub.live), "done": answer.done}


def _listed(hub: Runtime, book: Book, which: Which, page: NewestPage) -> list[dict[str, Any]]:
    found = book.circuits.newest(which, before=page.before, limit=page.to_read)
    measured = book.circuits.measurements([circuit.number for circuit in found])
    return [circuit_out(circuit, measured, hub.live) for circuit in found]


def _whole(hub: Runtime, book: Book, number: int) -> dict[str, Any]:
    circuit = book.circuits.one(number)
    shown = circuit_out(circuit, book.circuits.measurements([number]), hub.live)
    return {**shown, "events": [event_out(event) for event in book.circuits.events(number)]}


NEVER_STOOD = (CircuitState.REQUESTED, CircuitState.ADMITTED)
"""Nothing was measured of a circuit in these states."""
