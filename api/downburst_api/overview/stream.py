"""The page's event stream: server-sent events, one overview a second for all clients."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from functools import partial

from fastapi import APIRouter, Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from downburst.bus.local import BusSubscription
from downburst.domain.access import Scope
from downburst.domain.circuits.signs import CircuitsChanged
from downburst.domain.events import (
    FaultSeen,
    FeedsChanged,
    LdmPeerChanged,
    LdmSourceChanged,
    NodeChanged,
    PlanMade,
    SessionChanged,
    SitesChanged,
    SubscriptionsChanged,
    TcpProfilesChanged,
    TrafficSeen,
    UpstreamChanged,
)
from downburst.foundation.errors import DownburstError
from downburst_api.border.authorization import shown_by
from downburst_api.http.parameters import Hub
from downburst_api.overview.document import overview_of
from downburst_api.runtime import Runtime

router = APIRouter(prefix="/v1", tags=["overview"])


@router.get(
    "/events",
    response_class=EventSourceResponse,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events named `overview`; `lost` counts drops."}
    },
)
async def events(hub: Hub, request: Request) -> EventSourceResponse:
    """The overview each second, and immediately after a change; a slow reader misses some, with their number in
    the next.
    """
    return EventSourceResponse(overviews(hub, partial(_still_may, hub, request)), ping=PING_S)


async def overviews(hub: Runtime, still_may: Callable[[], Awaitable[bool]]) -> AsyncGenerator[ServerSentEvent, None]:
    """The events for one page, until the hub stops or the caller loses the right."""
    with hub.bus.subscribe(*_TELLING, limit=EVENTS_WAITING) as changes:
        while not changes.closed and await still_may():
            text = await hub.overview.document.text(lambda: overview_of(hub))
            yield ServerSentEvent(event="overview", data=text)
            await _until_due(changes)
            lost = changes.take_dropped()
            if lost:
                yield ServerSentEvent(event="lost", data=str(lost))


async def _still_may(hub: Runtime, request: Request) -> bool:
    try:
        caller = await hub.gate.caller(shown_by(request.scope))
    except DownburstError:
        return False
    return caller.may(Scope.READ)


async def _until_due(changes: BusSubscription) -> None:
    """Waits for a second, or less on an event other than traffic; at least a quarter of a second."""
    with suppress(TimeoutError):
        async with asyncio.timeout(EVERY_S):
            await asyncio.sleep(SHORTEST_S)
            while isinstance(await changes.next(), TrafficSeen):
                pass


_TELLING = (
    TrafficSeen,
    SessionChanged,
    UpstreamChanged,
    LdmSourceChanged,
    LdmPeerChanged,
    PlanMade,
    FaultSeen,
    NodeChanged,
    FeedsChanged,
    SitesChanged,
    SubscriptionsChanged,
    TcpProfilesChanged,
    CircuitsChanged,
)
EVERY_S = 1.0
SHORTEST_S = 0.25
PING_S = 15
EVENTS_WAITING = 64
