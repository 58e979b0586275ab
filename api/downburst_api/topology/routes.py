"""Routes of the topology and of the reservation desk's questions."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst_api.http.parameters import Hub
from downburst_contract import topology as shapes

router = APIRouter(prefix="/v1", tags=["topology"])
DryRun = Annotated[bool, Query(description="Dry run: only show the result.")]


@router.get("/topology")
async def show_topology(hub: Hub) -> shapes.Topology:
    """The topology: domains, switches, links, hosts, and windows of maintenance."""
    return shapes.Topology.of(await hub.ledger.read(lambda tx: tx.planning.topology.get()))


@router.put("/topology", responses={409: {"description": "Circuits hold more than it would have."}})
async def put_topology(
    hub: Hub, wanted: shapes.TopologyWanted, *, dry_run: DryRun = False
) -> shapes.TopologyAnswered:
    """Replaces the topology, unless circuits would lose a link or a rate; the answer has the changes."""
    return shapes.TopologyAnswered.answer(await hub.circuits.desk.put_topology(wanted.to_model(), dry_run=dry_run))


@router.post("/topology/window", responses={404: {}})
async def find_window(hub: Hub, asked: shapes.WindowAsked) -> shapes.WindowAnswer:
    """The first window in which a circuit would be admitted, with its path and tags; nothing is reserved."""
    question = asked.to_model(await _ports(hub), hub.clock.now())
    return shapes.WindowAnswer.model_validate(await hub.circuits.desk.find_window(question))


@router.post("/topology/rate", responses={404: {}})
async def find_rate(hub: Hub, asked: shapes.RateAsked) -> shapes.RateAnswer:
    """The rates that are free throughout a window; nothing is reserved."""
    question = asked.to_model(await _ports(hub), hub.clock.now())
    return shapes.RateAnswer.model_validate(await hub.circuits.desk.find_rate(question))


async def _ports(hub: Hub) -> set[str]:
    return {port.name for port in await hub.ledger.read(lambda tx: tx.ports.all())}
