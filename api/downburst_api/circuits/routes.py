"""Routes of ports and circuits."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Depends, Query, Response

from downburst.domain.circuits import FINISHED, CircuitState
from downburst.foundation.moments import coming_moment
from downburst.ledger.repositories.circuits import Which
from downburst_api.circuits import service
from downburst_api.http.pagination import NewestPaged, Paged
from downburst_api.http.parameters import Hub, Number
from downburst_contract import circuits as shapes

router = APIRouter(prefix="/v1", tags=["circuits"])
DryRun = Annotated[bool, Query(description="Dry run: only show the result.")]
By = Annotated[str, Query(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True)
class _Past:
    """The past circuits of a list."""

    finished: Annotated[bool, Query(description="Also those that are finished.")] = False
    archived: Annotated[bool, Query(description="Also those that finished long ago.")] = False

    @property
    def is_shown(self) -> bool:
        """True if any finished ones are."""
        return self.finished or self.archived


Past = Annotated[_Past, Depends()]
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The port has no capacity left in the window; `circuits` lists the reservations."}
}

_TOO_LATE: dict[int | str, dict[str, Any]] = {409: {"description": "The circuit is in another part of its life."}}


@router.get("/ports")
async def list_ports(hub: Hub, page: Paged) -> list[shapes.Port]:
    """Every port where circuits may end, by name."""
    return page.of(map(shapes.Port.of, await hub.ledger.read(lambda tx: tx.ports.all())), "port")


@router.post("/ports", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_port(hub: Hub, wanted: shapes.PortNew) -> shapes.Port:
    """Creates a port."""
    return shapes.Port.of(await hub.circuits.add_port(wanted.to_model()))


@router.get("/ports/{port}")
async def show_port(hub: Hub, port: str) -> shapes.Port:
    """One port."""
    return shapes.Port.of(await hub.ledger.read(lambda tx: tx.ports.one(port)))


@router.patch("/ports/{port}", responses=_CONFLICT)
async def change_port(hub: Hub, port: str, wanted: shapes.PortChange) -> shapes.Port:
    """Changes the given properties of a port, unless circuits on it would lose reserved capacity."""
    before = await hub.ledger.read(lambda tx: tx.ports.one(port))
    return shapes.Port.of(await hub.circuits.change_port(service.changed_port(before, wanted)))


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
    past: Past,
    page: NewestPaged,
) -> list[shapes.Circuit]:
    """The newest circuits, newest first; finished ones and the archive only on request."""
    wanted = state or [one for one in CircuitState if past.is_shown or one not in FINISHED]
    since = None if past.archived else hub.clock.now() - timedelta(days=hub.settings.circuits.archive_days)
    which = Which(states=wanted, site=site, port=port, finished_since=since)
    return page.of(await hub.ledger.read(lambda tx: service.listed(hub, tx, which, page)), "circuit")


@router.get("/circuits.ics", response_class=Response, responses={200: {"content": {"text/calendar": {}}}})
async def subscribe_to_circuits(
    hub: Hub,
    site: Annotated[str | None, Query(max_length=63)] = None,
    port: Annotated[str | None, Query(max_length=63)] = None,
    token: Annotated[  # noqa: ARG001 - read by the border
        str | None, Query(max_length=200, description="A token that may only read, for programs without headers.")
    ] = None,
) -> Response:
    """The circuits as a calendar (iCalendar) for programs that subscribe: open ones, and those finished lately."""
    text = await service.subscribed(hub, site=site, port=port)
    return Response(text, media_type="text/calendar; charset=utf-8")


@router.post(
    "/circuits", status_code=201, responses={**_CONFLICT, 200: {"description": "A dry run, or created before."}}
)
async def request_circuit(
    hub: Hub, wanted: shapes.CircuitNew, response: Response, *, dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Reserves a circuit, or holds it for `hold_s`; a refusal has the reason and the circuits in conflict."""
    await service.check_provider(hub, wanted)
    circuit = wanted.to_model(hub.clock.now(), wanted.request_id or uuid4().hex)
    answer = await hub.circuits.request(circuit, wanted.hold_s, dry_run=dry_run)
    return await service.answered(hub, answer, response)


@router.get("/circuits/{circuit}")
async def show_circuit(hub: Hub, circuit: Number) -> shapes.CircuitWhole:
    """One circuit with its history and measurements."""
    return await hub.ledger.read(lambda tx: service.whole(hub, tx, circuit))


@router.patch("/circuits/{circuit}", responses=_CONFLICT)
async def modify_circuit(
    hub: Hub, circuit: Number, wanted: shapes.CircuitModify, *, dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Changes rate, window or burst, together or not at all: a refusal leaves the circuit and its traffic as is."""
    change = wanted.to_model(hub.clock.now())
    return await service.answered(hub, await hub.circuits.modify(circuit, change, by=wanted.by, dry_run=dry_run))


@router.delete("/circuits/{circuit}")
async def cancel_circuit(
    hub: Hub, circuit: Number, *, by: By = "operator", dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Cancels a circuit; its rate is free immediately, and its set-up is removed."""
    return await service.answered(hub, await hub.circuits.cancel(circuit, by=by, dry_run=dry_run))


@router.post("/circuits/{circuit}/clone", status_code=201, responses=_CONFLICT)
async def clone_circuit(
    hub: Hub,
    circuit: Number,
    response: Response,
    wanted: shapes.CircuitClone | None = None,
    *,
    dry_run: DryRun = False,
) -> shapes.CircuitAnswered:
    """Reserves a copy of a circuit, with the same duration, from now or from `begin`."""
    clone = wanted or shapes.CircuitClone()
    answer = await hub.circuits.clone(
        circuit,
        request_id=clone.request_id or uuid4().hex,
        begin=coming_moment(clone.begin, hub.clock.now()),
        by=clone.by,
        dry_run=dry_run,
    )
    return await service.answered(hub, answer, response)


@router.post("/circuits/{circuit}/commit", responses=_TOO_LATE)
async def commit_circuit(
    hub: Hub, circuit: Number, *, by: By = "operator", dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Makes a held circuit a reservation; one that is reserved already stays so."""
    return await service.answered(hub, await hub.circuits.commit(circuit, by=by, dry_run=dry_run))


@router.post("/circuits/{circuit}/create-path", responses=_TOO_LATE)
async def create_path(
    hub: Hub, circuit: Number, *, by: By = "operator", dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Has the path of a waiting circuit set up; one that has a path keeps it."""
    return await service.answered(hub, await hub.circuits.create_path(circuit, by=by, dry_run=dry_run))


@router.post("/circuits/{circuit}/tear-down-path", responses=_TOO_LATE)
async def tear_down_path(
    hub: Hub, circuit: Number, *, by: By = "operator", dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Removes the path of a circuit, which stays reserved and waits for its creation."""
    return await service.answered(hub, await hub.circuits.tear_down_path(circuit, by=by, dry_run=dry_run))


@router.post("/circuits/{circuit}/override")
async def override_circuit(
    hub: Hub, circuit: Number, wanted: shapes.CircuitOverride, *, dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Shows a circuit as active or down whatever its probes say; feeds never use one that the probes refuse."""
    answer = await hub.circuits.override(circuit, wanted.state, wanted.reason, by=wanted.by, dry_run=dry_run)
    return await service.answered(hub, answer)


@router.post("/circuits/{circuit}/leaves", status_code=201, responses={404: {}, **_CONFLICT})
async def add_leaf(
    hub: Hub, circuit: Number, wanted: shapes.LeafNew, response: Response, *, dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Adds a site to a multipoint circuit; the others go on. Feeds ride to it when probes have passed."""
    answer = await hub.circuits.leaves.add_leaf(circuit, wanted.to_model(), by=wanted.by, dry_run=dry_run)
    return await service.answered(hub, answer, response)


@router.delete("/circuits/{circuit}/leaves/{site}", responses={404: {}})
async def remove_leaf(
    hub: Hub, circuit: Number, site: str, *, by: By = "operator", dry_run: DryRun = False
) -> shapes.CircuitAnswered:
    """Removes a site from a multipoint circuit; the others go on, and feeds to it take the routed path."""
    return await service.answered(hub, await hub.circuits.leaves.remove_leaf(circuit, site, by=by, dry_run=dry_run))


@router.post("/circuits/{circuit}/measure", status_code=202)
async def measure_circuit(hub: Hub, circuit: Number) -> shapes.CircuitWhole:
    """Measures a circuit now; the result is in `measurements` some seconds later."""
    measured = await hub.circuits.measure(circuit)
    return await hub.ledger.read(lambda tx: service.whole(hub, tx, measured.number))
