"""The application: routes, errors, the page."""

from functools import cache
from importlib.metadata import version
from pathlib import Path

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from downburst_api.access_requests import routes as access_requests
from downburst_api.alarms import objectives
from downburst_api.alarms import routes as alarms
from downburst_api.border import authorization, problems
from downburst_api.border.idempotency import Idempotency
from downburst_api.border.proxies import Forwarded
from downburst_api.bridges import origin, publishers
from downburst_api.bridges import routes as bridges
from downburst_api.circuits import bookings
from downburst_api.circuits import routes as circuits
from downburst_api.deliveries import routes as deliveries
from downburst_api.deliveries import trace
from downburst_api.feeds import routes as feeds
from downburst_api.health import routes as health
from downburst_api.http import dashboard, openapi
from downburst_api.latency import histogram, volume
from downburst_api.latency import routes as latency
from downburst_api.ldm import routes as ldm
from downburst_api.measurements import routes as measurements
from downburst_api.metrics import scrape
from downburst_api.oidc import routes as oidc
from downburst_api.oidc.provider import Provider
from downburst_api.ordering import routes as ordering
from downburst_api.overview import document, now, stream
from downburst_api.plans import routes as plans
from downburst_api.probes import routes as probes
from downburst_api.products import routes as products
from downburst_api.products import upload
from downburst_api.relays import routes as relays
from downburst_api.relays import siblings
from downburst_api.resends import routes as resends
from downburst_api.runtime import Runtime
from downburst_api.sessions import routes as sessions
from downburst_api.sites import routes as sites
from downburst_api.sites import self_service
from downburst_api.strip import routes as strip
from downburst_api.subscriptions import routes as subscriptions
from downburst_api.tcp_profiles import routes as tcp_profiles
from downburst_api.topology import routes as topology
from downburst_api.upstreams import routes as upstreams
from downburst_api.users import routes as users


def create_app(
    runtime: Runtime, *, page: Path | None = None, guide: Path | None = None, provider: Provider | None = None
) -> FastAPI:
    """The api of one hub, with page and guide as built in these directories; opens neither network nor files.

    `provider`: the provider of OpenID Connect, if another than the one of the settings is wanted.
    """
    app = FastAPI(
        title="Downburst",
        # FastAPI's own pages load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        version=version("downburst"),
        description="Feeds, sites, plans and latencies of one hub. Errors are problem documents (RFC 9457).",
    )
    app.state.runtime = runtime
    oidc_settings = runtime.settings.access.oidc
    app.state.provider = provider or (Provider(oidc_settings, runtime.clock) if oidc_settings.issuer else None)
    problems.install(app)
    app.router.routes.extend(_routes())
    dashboard.mount(app, page, guide)
    openapi.install(app)
    app.add_middleware(Idempotency, ledger=runtime.ledger)
    authorization.install(app, runtime.gate, runtime.settings.limits, [module.router for module in MODULES])
    app.add_middleware(Forwarded, proxies=runtime.settings.access.proxies)
    return app


def prepare(app: FastAPI) -> FastAPI:
    """The app with its routes built, which FastAPI otherwise does during the first request, in some 60 ms."""
    for route in app.routes:
        route.matches({"type": "http", "method": "GET", "path": "/-", "root_path": "", "headers": [], "app": app})
    return app


@cache
def _routes() -> list[BaseRoute]:
    """The routes of all modules. FastAPI builds them during their first request, once for all apps of a process."""
    collected = APIRouter(responses=dict.fromkeys((400, 401, 403, 404, 429, 503), openapi.REFUSED))
    for module in MODULES:
        collected.include_router(module.router)
    return collected.routes


MODULES = (
    sessions,
    oidc,
    users,
    access_requests,
    self_service,
    objectives,
    alarms,
    products,
    upload,
    trace,
    deliveries,
    feeds,
    sites,
    subscriptions,
    resends,
    upstreams,
    ldm,
    bridges,
    publishers,
    origin,
    circuits,
    topology,
    bookings,
    ordering,
    relays,
    siblings,
    tcp_profiles,
    probes,
    measurements,
    plans,
    latency,
    histogram,
    volume,
    document,
    stream,
    now,
    strip,
    health,
    scrape,
)
"""The modules with routes, in the order of the description."""
