"""Is it up, and what runs."""

from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from downburst.errors import NodeAway
from downburst_api.problems import problem
from downburst_api.runtime import Runtime, runtime_of

router = APIRouter(tags=["health"])
Hub = Annotated[Runtime, Depends(runtime_of)]


@router.get("/livez")
async def livez() -> JSONResponse:
    """200 while the process answers at all; without an answer it should be restarted."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz")
async def readyz(hub: Hub) -> JSONResponse:
    """200 while the hub stores and sends products, which it also does without the ledger's server."""
    return _judged(hub, "node", "store")


@router.get("/healthz")
async def healthz(hub: Hub) -> JSONResponse:
    """200 while every probe passes; else 503 with a problem that names the failing ones. It is cheap to request."""
    return _judged(hub)


def _judged(hub: Runtime, *names: str) -> JSONResponse:
    if not hub.node.running:
        return problem(
            503, title=NodeAway.title, detail="the node is not running; it is being restarted", code="node-away"
        )
    probes = {one.name: one.fault or "ok" for one in hub.probes.all() if not names or one.name in names}
    failing = hub.probes.failing(*names)
    if not failing:
        return JSONResponse({"status": "ok", "ledger": probes.get("ledger", "ok"), "probes": probes})
    detail = "; ".join(f"{one.name}: {one.fault}" for one in failing)
    return problem(503, title="The hub is not healthy", detail=detail, code="probe-failed", probes=probes)


@router.get("/v1/status")
async def status(hub: Hub) -> dict[str, Any]:
    """The hub and its node, with the node's feeds and sessions."""
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
        "probes": {one.name: one.fault or "ok" for one in hub.probes.all()},
        "node": {"running": hub.node.running, "restarts": hub.node.restarts},
        "sites_connected": hub.live.connected,
        "feeds": told.get("feeds", []),
        "sessions": told.get("sessions", []),
    }
