"""Routes of sites' requests for access, and of operators' answers."""

from typing import Annotated

from fastapi import APIRouter, Query

from downburst_api.access_requests import service
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Asking, Hub, Number
from downburst_contract import access as shapes

router = APIRouter(prefix="/v1/access-requests", tags=["self-service"])


@router.post("", status_code=201)
async def ask_for_access(hub: Hub, caller: Asking, wanted: shapes.RequestNew) -> shapes.RequestMade:
    """Asks for access; the secret in the answer gives access to the state of the request, and is shown only here."""
    return await service.ask(hub, caller, wanted)


@router.post("/state")
async def show_request(hub: Hub, wanted: shapes.RequestSecret) -> shapes.RequestStateShown:
    """State of a request; once approved, with a link to choose a password, until one is chosen."""
    return await service.state(hub, wanted.secret)


@router.get("")
async def list_requests(
    hub: Hub, page: Paged, *, decided: Annotated[bool, Query(description="Include answered requests.")] = False
) -> list[shapes.AccessRequest]:
    """Pending requests, oldest first."""
    found = await hub.ledger.read(lambda tx: tx.access.requests.all(waiting=not decided))
    return page.of(map(shapes.AccessRequest.of, found), "number")


@router.post("/{number}/approval", responses={409: {}})
async def approve(
    hub: Hub, caller: Asking, number: Number, wanted: shapes.Approval | None = None
) -> shapes.AccessRequest:
    """Creates the site as it registered itself, and a user who sees only that site."""
    decided = await service.approve(hub, number, wanted or shapes.Approval(), by=caller.name[:80])
    return shapes.AccessRequest.of(decided)


@router.post("/{number}/refusal", responses={409: {}})
async def refuse(hub: Hub, caller: Asking, number: Number, wanted: shapes.Refusal) -> shapes.AccessRequest:
    """Refuses a request, with a reason."""
    decided = await hub.ledger.write(
        lambda tx: tx.access.requests.refuse(number, by=caller.name[:80], answer=wanted.answer)
    )
    return shapes.AccessRequest.of(decided)
