"""The application: routes, errors, the page."""

from importlib.metadata import version

from fastapi import FastAPI

from downburst_api import (
    circuits,
    deliveries,
    feeds,
    health,
    latency,
    ldm,
    metrics,
    overview,
    page,
    plans,
    problems,
    products,
    resends,
    sites,
    stream,
    traces,
    upstreams,
)
from downburst_api.runtime import Runtime


def create_app(runtime: Runtime) -> FastAPI:
    """The api of one hub; touches neither network nor files by itself."""
    app = FastAPI(
        title="Downburst",
        version=version("downburst"),
        description="Feeds, sites, plans and latencies of one hub. Errors are problem documents (RFC 9457).",
        responses={400: _PROBLEM, 404: _PROBLEM, 503: _PROBLEM},
    )
    app.state.runtime = runtime
    problems.install(app)
    for module in (
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
        overview,
        stream,
        health,
        metrics,
    ):
        app.include_router(module.router)
    page.mount(app, runtime.dashboard)
    return app


_PROBLEM = {
    "description": "A problem document: one sentence says what is wrong and what to do.",
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
