"""Routes of sites that ask for access, and of operators who answer."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from downburst.access import (
    LINK_PREFIX,
    REQUEST_PREFIX,
    AccessRequest,
    Caller,
    LinkKind,
    hashed,
    new_secret,
)
from downburst.events import SitesChanged
from downburst.ledger import Book
from downburst.network.addresses import network_of
from downburst_api.guard import caller_of
from downburst_api.pages import Paged
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import Shape
from downburst_api.users import INVITATION

router = APIRouter(prefix="/v1/access-requests", tags=["self-service"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]
_Text = Annotated[str, Field(max_length=500)]
_Feeds = Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=100)]


class RequestNew(Shape):
    """A site that asks to be served, with its endpoint."""

    site: Annotated[str, Field(min_length=1, max_length=63)]
    organisation: Annotated[str, Field(min_length=1, max_length=500)]
    contact: Annotated[str, Field(min_length=3, max_length=500)]
    place: _Text = ""
    multicast_interface: Annotated[str, Field(max_length=64)] = ""
    access_rate_bps: Annotated[float, Field(gt=0, le=1e15)] | None = None
    feeds: _Feeds | None = None
    note: Annotated[str, Field(max_length=2000)] = ""

    @classmethod
    def _nullable(cls) -> set[str]:
        return {"access_rate_bps"}


class RequestSecret(Shape):
    """What an asker was told when asking."""

    secret: Annotated[str, Field(min_length=1, max_length=200)]


class Approval(Shape):
    """Which feeds the site may take; what it asked for, if left out."""

    allow: _Feeds | None = None
    answer: _Text = ""


class Refusal(Shape):
    """Why not, for the asker to read."""

    answer: Annotated[str, Field(min_length=1, max_length=500)]


@router.post("", status_code=201)
async def ask_for_access(hub: Hub, caller: Asking, wanted: RequestNew) -> dict[str, Any]:
    """Asks for access; the secret in the answer gives access to the state of the request, and is shown only here."""
    hub.gate.requests.take(network_of(caller.peer))
    secret = new_secret(REQUEST_PREFIX)
    given = wanted.model_dump() | {"feeds": tuple(wanted.feeds or ())}
    request = AccessRequest(0, hashed(secret), **given, peer=caller.peer)
    kept = await hub.ledger.write(lambda book: book.access_requests.add(request))
    return {"number": kept.number, "secret": secret, "fragment": f"#request={secret}"}


@router.post("/state")
async def show_request(hub: Hub, wanted: RequestSecret) -> dict[str, Any]:
    """State of a request; once approved, with a link to choose a password, until one is chosen."""
    sha256, link = hashed(wanted.secret), new_secret(LINK_PREFIX)

    def look(book: Book) -> dict[str, Any]:
        request = book.access_requests.by_secret(sha256)
        shown = {name: getattr(request, name) for name in ("number", "site", "state", "answer", "asked_at")}
        user = None if request.invites is None else book.users.find(request.invites)
        if user is None:
            return shown | {"user": None, "fragment": None}
        if user.password_hash is not None or not user.active or user.site != request.site:
            return shown | {"user": user.name, "fragment": None}
        book.login_links.add(hashed(link), LinkKind.INVITATION, lifetime=INVITATION, user=user.name)
        return shown | {"user": user.name, "fragment": f"#invitation={link}"}

    return await hub.ledger.write(look)


@router.get("")
async def list_requests(
    hub: Hub, page: Paged, *, decided: Annotated[bool, Query(description="Include answered requests.")] = False
) -> list[dict[str, Any]]:
    """Pending requests, oldest first."""
    found = await hub.ledger.read(lambda book: book.access_requests.all(waiting=not decided))
    return page.of((_request_out(one) for one in found), "number")


@router.post("/{number}/approval", responses={409: {}})
async def approve(hub: Hub, caller: Asking, number: Number, wanted: Approval | None = None) -> dict[str, Any]:
    """Creates the site as it registered itself, and a user who sees only that site."""
    given = wanted or Approval()

    def decide(book: Book) -> AccessRequest:
        asked = book.access_requests.one(number).feeds
        allow = asked if given.allow is None else tuple(given.allow)
        for feed in allow:
            if feed != "*":
                book.feeds.one(feed)
        return book.access_requests.approve(number, allow=allow, by=caller.name[:80], answer=given.answer)

    decided = await hub.ledger.write(decide)
    await hub.node.refresh()
    hub.bus.publish(SitesChanged())
    return _request_out(decided)


@router.post("/{number}/refusal", responses={409: {}})
async def refuse(hub: Hub, caller: Asking, number: Number, wanted: Refusal) -> dict[str, Any]:
    """Refuses a request, with a reason."""
    decided = await hub.ledger.write(
        lambda book: book.access_requests.refuse(number, by=caller.name[:80], answer=wanted.answer)
    )
    return _request_out(decided)


def _request_out(request: AccessRequest) -> dict[str, Any]:
    values = asdict(request)
    del values["secret_sha256"]
    return values
