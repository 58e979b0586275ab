"""Routes of sites, their tokens and credentials."""

from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response

from downburst.domain.sites import Site
from downburst.ledger import Transaction
from downburst.live.traced import TracerQuestion
from downburst_api.http.etags import Unchanged, etag, tagged
from downburst_api.http.pagination import Paged
from downburst_api.http.parameters import Hub
from downburst_api.sites import service
from downburst_api.sites.path import parallel_of, path_out
from downburst_api.sites.standings import Standings
from downburst_api.sites.tracing import traced_out
from downburst_contract import sites as shapes
from downburst_contract import tracer as traced
from downburst_contract.relays import SiteWay

router = APIRouter(prefix="/v1", tags=["sites"])


@router.get("/sites")
async def list_sites(hub: Hub, page: Paged) -> list[shapes.SiteListed]:
    """Every site, by name, with its state, its backlog, and the reason of each feed that it can't store."""
    sites, standings = await hub.ledger.read(lambda tx: (tx.sites.all(), Standings.read(tx)))
    return page.of(service.listed(hub, sites, standings), "site")


@router.post("/sites", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_site(hub: Hub, answer: Response, wanted: shapes.SiteNew) -> shapes.Site:
    """Creates a site."""
    site = wanted.to_model()
    await service.check_patterns(hub, ldm_host=site.ldm_host, limits=site.limits)
    kept = await hub.ledger.write(lambda tx: tx.sites.add(site))
    await service.announce(hub)
    return tagged(shapes.Site.of(kept), answer)


@router.get("/sites/{site}")
async def show_site(hub: Hub, answer: Response, site: str) -> shapes.SiteWhole:
    """One site with its subscriptions, credentials and tokens, and the state of its session."""
    kept = await hub.ledger.read(lambda tx: service.Kept.read(tx, site))
    answer.headers["etag"] = etag(shapes.Site.of(kept.site))
    return service.whole(hub, kept)


@router.get("/sites/{site}/path")
async def show_path(hub: Hub, site: str) -> shapes.Path:
    """Facts about the path to a site: measured, tested and reserved."""
    facts = await hub.ledger.read(lambda tx: service.reserved(tx, site))
    kept = facts.site
    retry = timedelta(minutes=hub.settings.multicast.retry_minutes)
    known, forecast = hub.live.paths.of(site), hub.live.paths.rates.of(kept, hub.clock.now())
    feeds_bps = sum(hub.live.arrivals[feed].mean_bps() for feed in facts.feeds & hub.live.arrivals.keys())
    path = path_out(kept, known, forecast, facts.circuits, facts.measured, retry=retry)
    path |= {
        "parallel": parallel_of(kept, known, feeds_bps),
        "way": SiteWay.of(facts.way) if facts.way is not None else None,
    }
    return shapes.Path(**path)


@router.get("/sites/{site}/tracer")
async def show_tracer(
    hub: Hub,
    site: str,
    *,
    last_s: Annotated[float, Query(gt=0, le=7 * 86_400, description="Length of the period, up to now.")] = 60,
    points: Annotated[int, Query(ge=2, le=2_000, description="Most samples of each connection.")] = 600,
    variable: Annotated[
        list[Annotated[str, Query(max_length=64)]] | None,
        Query(max_length=24, description="Name in the kernel's `tcp_info`; repeat for more; all if left out."),
    ] = None,
) -> traced.TracedSite:
    """Limits of the connections of a site by share of the time, with stalls and samples, by the hub's kernel."""
    await hub.ledger.read(lambda tx: tx.sites.one(site))
    now = hub.clock.now()
    question = TracerQuestion(site, now - timedelta(seconds=last_s), now, points, variable or ())
    return traced_out(site, await hub.node.tracer(question))


@router.patch("/sites/{site}")
async def change_site(
    hub: Hub, answer: Response, unchanged: Unchanged, site: str, wanted: shapes.SiteChange
) -> shapes.Site:
    """Changes the given properties of a site."""
    given = wanted.given()
    await service.check_patterns(hub, ldm_host=wanted.ldm_host, limits=given.get("limits", ()))

    def change(tx: Transaction) -> Site:
        return tx.sites.change(replace(service.seen(tx, site, unchanged), **given))

    kept = await hub.ledger.write(change)
    await service.announce(hub)
    return tagged(shapes.Site.of(kept), answer)


@router.delete("/sites/{site}", status_code=204)
async def remove_site(hub: Hub, unchanged: Unchanged, site: str) -> None:
    """Removes a site; its receiver is disconnected immediately."""
    await hub.ledger.write(lambda tx: tx.sites.remove(service.seen(tx, site, unchanged).name))
    hub.live.forget_site(site)
    await service.announce(hub)


@router.post("/sites/{site}/tokens", status_code=201)
async def add_token(hub: Hub, site: str, wanted: shapes.TokenNew | None = None) -> shapes.TokenMade:
    """Creates a one-time enrolment token; its text is shown only here."""
    hours = (wanted.hours if wanted else None) or hub.settings.token_hours
    days = wanted.credential_days if wanted else None
    text, kept = await hub.node.new_token(
        site,
        lifetime=timedelta(hours=hours),
        credential_lifetime=None if days is None else timedelta(days=days),
    )
    return shapes.TokenMade.of_text(text, kept)


@router.delete("/sites/{site}/tokens")
async def end_tokens(hub: Hub, site: str) -> shapes.TokensEnded:
    """Ends the unused enrolment tokens of a site; enrolled receivers are not affected."""
    ended = await hub.ledger.write(lambda tx: tx.enrolment.tokens.end_pending(site))
    return shapes.TokensEnded(site=site, ended=ended)


@router.delete("/sites/{site}/credentials", status_code=200)
async def revoke_credentials(
    hub: Hub, site: str, sha256: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None
) -> shapes.CredentialsRevoked:
    """Revokes one credential of a site, or all; a connected receiver is disconnected immediately."""
    return shapes.CredentialsRevoked(site=site, revoked=await service.revoke(hub, site, sha256))


@router.post("/sites/{site}/credentials/replacement", status_code=202)
async def replace_credentials(hub: Hub, site: str) -> shapes.ReplacementAsked:
    """Has the receivers of a site replace their credentials when they are connected; their sessions continue."""
    return await service.replace_credentials(hub, site)
