"""The application: routes, errors, the page."""

from collections.abc import Iterator
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.routing import Route

from downburst_api import (
    access_requests,
    alarms,
    browsing,
    circuits,
    deliveries,
    described,
    feeds,
    guard,
    health,
    latency,
    latency_spread,
    ldm,
    objectives,
    overview,
    own_site,
    page,
    plans,
    problems,
    products,
    resends,
    sessions,
    sites,
    stream,
    traces,
    upstreams,
    users,
    volume,
)
from downburst_api.border.proxies import Forwarded
from downburst_api.idempotency import Idempotency
from downburst_api.metrics import scrape
from downburst_api.runtime import Runtime


def create_app(runtime: Runtime) -> FastAPI:
    """The api of one hub; touches neither network nor files by itself."""
    app = FastAPI(
        title="Downburst",
        # FastAPI's own pages load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        version=version("downburst"),
        description="Feeds, sites, plans and latencies of one hub. Errors are problem documents (RFC 9457).",
        responses={400: _PROBLEM, 401: _PROBLEM, 403: _PROBLEM, 404: _PROBLEM, 429: _PROBLEM, 503: _PROBLEM},
    )
    app.state.runtime = runtime
    problems.install(app)
    modules = (
        sessions,
        users,
        access_requests,
        own_site,
        objectives,
        alarms,
        browsing,
        products,
        traces,
        deliveries,
        feeds,
        sites,
        resends,
        upstreams,
        ldm,
        circuits,
        plans,
        latency,
        latency_spread,
        volume,
        overview,
        stream,
        health,
        scrape,
    )
    for module in modules:
        app.include_router(module.router)
    page.mount(app, runtime.dashboard)
    described.install(app)
    app.add_middleware(Idempotency, ledger=runtime.ledger)
    routes = _routes(app, *(module.router for module in modules))
    guard.install(app, runtime.gate, runtime.settings.limits, routes)
    app.add_middleware(Forwarded, proxies=runtime.settings.access.proxies)
    return app


def _routes(app: FastAPI, *routers: APIRouter) -> Iterator[tuple[str, str]]:
    """Method and path of everything that answers; the page's files stand for `GET /`."""
    yield "GET", "/"
    for owner in (app.router, *routers):
        for route in owner.routes:
            if isinstance(route, Route):
                yield from ((method, route.path) for method in route.methods or () if method != "HEAD")


_PROBLEM = {
    "description": "A problem document: one sentence with the problem and the remedy.",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail", "code"],
                "properties": {
                    "type": {"type": "string"},
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                    "code": {"type": "string"},
                },
            }
        }
    },
}
