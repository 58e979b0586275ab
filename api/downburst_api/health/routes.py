"""Routes of the hub's health and version."""

from importlib.metadata import version

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from downburst.foundation.errors import NodeAway
from downburst_api.border.problems import problem
from downburst_api.http.parameters import Hub
from downburst_api.runtime import Runtime
from downburst_contract import overview as shapes

router = APIRouter(tags=["health"])


@router.get("/livez", response_model=shapes.Alive)
async def livez() -> JSONResponse:
    """200 while the process answers at all; without an answer it should be restarted."""
    return JSONResponse({"status": "alive"})


@router.get("/readyz", response_model=shapes.Health)
async def readyz(hub: Hub) -> JSONResponse:
    """200 while the hub stores and sends products, which it also does without the ledger's server."""
    return _judged(hub, "node", "store")


@router.get("/healthz", response_model=shapes.Health)
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


@router.get("/v1/status", response_model_exclude_unset=True)
async def status(hub: Hub) -> shapes.Status:
    """The hub and its node, with the node's feeds and sessions."""
    try:
        told = await hub.node.status()
    except NodeAway:
        told = {}
    return shapes.Status(
        name=hub.settings.name,
        version=version("downburst"),
        started_at=hub.started_at,
        uptime_s=(hub.clock.now() - hub.started_at).total_seconds(),
        data_dir=str(hub.settings.data_dir),
        sites_address=list(hub.node.sites_address),
        ca_sha256=hub.node.ca_sha256,
        probes={one.name: one.fault or "ok" for one in hub.probes.all()},
        node=shapes.NodeState(running=hub.node.running, restarts=hub.node.restarts),
        sites_connected=hub.live.connected,
        feeds=told.get("feeds", []),
        sessions=told.get("sessions", []),
    )
