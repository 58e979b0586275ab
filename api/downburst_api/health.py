"""Is it up, and what runs."""

from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from downburst.errors import LedgerAway, NodeAway
from downburst_api.problems import problem
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(tags=["health"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/healthz")
async def healthz(hub: Hub) -> JSONResponse:
    """200 while the hub can take products in and send them, which it does without its ledger's server too."""
    try:
        await hub.ledger.read(lambda book: book.feeds.all(), patience_s=0)
        ledger = "ok"
    except LedgerAway as error:
        ledger = error.sentence
    if not hub.node.running:
        return problem(
            503, title=NodeAway.title, detail="the node is not running; it is being restarted", code="node-away"
        )
    return JSONResponse({"status": "ok", "ledger": ledger})


@router.get("/v1/status")
async def status(hub: Hub) -> dict[str, Any]:
    """The hub, its node, and what the node says of its feeds and sessions."""
    try:
        told = await hub.node.status()
    except NodeAway:
        told = {}
    return {
        "name": hub.settings.name,
        "version": version("downburst"),
        "started_at": hub.started_at,
        "uptime_s": (hub.clock.now() - hub.started_at).total_seconds(),
        "data_dir": str(hub.settings.data_dir),
        "sites_address": list(hub.node.sites_address),
        "ca_sha256": hub.node.ca_sha256,
        "node": {"running": hub.node.running, "restarts": hub.node.restarts},
        "sites_connected": hub.live.connected,
        "feeds": told.get("feeds", []),
        "sessions": told.get("sessions", []),
    }
