"""Routes of sites, their tokens and credentials, and subscriptions."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response

from downburst.access import Caller
from downburst.circuits import Circuit, Measured
from downburst.clock import from_us
from downburst.errors import NotFound
from downburst.events import SitesChanged, SubscriptionsChanged
from downburst.ledger import Book
from downburst.model import IdFilter, Resend, ResendKind, Site, Subscription
from downburst.moments import moment
from downburst.rights import Limit
from downburst_api.backlog_out import backlog_out
from downburst_api.etags import IfMatch, Unchanged, etag
from downburst_api.guard import caller_of
from downburst_api.pages import Paged
from downburst_api.path_out import path_out
from downburst_api.rights import check_pattern, check_right
from downburst_api.runtime import Runtime, runtime_of
from downburst_api.schemas import (
    SiteChange,
    SiteNew,
    SubscriptionNew,
    TokenNew,
    credential_out,
    site_out,
    subscription_out,
    token_out,
)
from downburst_api.standings import Standings, standing_out

router = APIRouter(prefix="/v1", tags=["sites"])
Hub = Annotated[Runtime, Depends(runtime_of)]
Asking = Annotated[Caller, Depends(caller_of)]
Number = Annotated[int, Path(ge=1, le=2**53)]


@router.get("/sites")
async def list_sites(hub: Hub, page: Paged) -> list[dict[str, Any]]:
    """Every site, by name, with its state, its backlog, and the reason of each feed that it can't store."""
    sites, standings = await hub.ledger.read(lambda book: (book.sites.all(), Standings.read(book)))
    now = hub.clock.now()

    def shown(site: Site) -> dict[str, Any]:
        backlog = backlog_out(hub.live.backlog(site.name), now)
        standing = standing_out(standings.of(site, hub.live))
        return {**site_out(site), **standing, **backlog, "troubles": _troubles(hub, site.name)}

    return page.of(map(shown, sites), "site")


@router.post("/sites", status_code=201, responses={409: {"description": "The name is taken."}})
async def add_site(hub: Hub, answer: Response, wanted: SiteNew) -> dict[str, Any]:
    """Creates a site."""
    site = wanted.to_model()
    await _check_ldm_host(hub, site.ldm_host)
    await _check_limits(hub, site.limits)
    kept = await hub.ledger.write(lambda book: book.sites.add(site))
    await _announce_sites(hub)
    return _tagged(site_out(kept), answer)


@router.get("/sites/{site}")
async def show_site(hub: Hub, answer: Response, site: str) -> dict[str, Any]:
    """One site with its subscriptions, credentials and tokens, and the state of its session."""
    kept, whole, standings = await hub.ledger.read(
        lambda book: (book.sites.one(site), _whole_site(book, site), Standings.read(book))
    )
    answer.headers["etag"] = etag(site_out(kept))
    session = hub.live.sessions.get(site)
    streams = session.streams if session and session.connected else None
    return {
        **whole,
        "troubles": _troubles(hub, site),
        "heartbeats": _heartbeats(hub, site),
        **standing_out(standings.of(kept, hub.live)),
        **backlog_out(hub.live.backlog(site), hub.clock.now()),
        "backlog": [asdict(one) for _, one in sorted(hub.live.backlog_by_feed(site).items())],
        "sites_address": list(hub.node.sites_address),
        "session": {"data_connections": asdict(streams) if streams else None},
    }


@router.get("/sites/{site}/path")
async def show_path(hub: Hub, site: str) -> dict[str, Any]:
    """Facts about the path to a site: measured, tested and reserved."""
    kept, circuits, measured = await hub.ledger.read(lambda book: _reserved(book, site))
    retry = timedelta(minutes=hub.settings.multicast.retry_minutes)
    return path_out(kept, hub.live.paths.of(site), circuits, measured, retry=retry)


@router.patch("/sites/{site}")
async def change_site(
    hub: Hub, answer: Response, unchanged: Unchanged, site: str, wanted: SiteChange
) -> dict[str, Any]:
    """Changes the given properties of a site."""
    await _check_ldm_host(hub, wanted.ldm_host)
    await _check_limits(hub, wanted.given().get("limits", ()))

    def change(book: Book) -> Site:
        return book.sites.change(replace(_seen(book, site, unchanged), **wanted.given()))

    kept = await hub.ledger.write(change)
    await _announce_sites(hub)
    return _tagged(site_out(kept), answer)


async def _check_ldm_host(hub: Runtime, host: str | None) -> None:
    if host is not None:
        await check_pattern(hub.node, "ldm_host", host)


async def _check_limits(hub: Runtime, limits: Iterable[Limit]) -> None:
    for limit in limits:
        await check_pattern(hub.node, "limits.pattern", limit.pattern)
        if limit.not_pattern is not None:
            await check_pattern(hub.node, "limits.not_pattern", limit.not_pattern)


@router.delete("/sites/{site}", status_code=204)
async def remove_site(hub: Hub, unchanged: Unchanged, site: str) -> None:
    """Removes a site; its receiver is disconnected immediately."""
    await hub.ledger.write(lambda book: book.sites.remove(_seen(book, site, unchanged).name))
    hub.live.forget_site(site)
    await _announce_sites(hub)


@router.post("/sites/{site}/tokens", status_code=201)
async def add_token(hub: Hub, site: str, wanted: TokenNew | None = None) -> dict[str, Any]:
    """Creates a one-time enrolment token; its text is shown only here."""
    hours = (wanted.hours if wanted else None) or hub.settings.token_hours
    days = wanted.credential_days if wanted else None
    text, kept = await hub.node.new_token(
        site,
        lifetime=timedelta(hours=hours),
        credential_lifetime=None if days is None else timedelta(days=days),
    )
    return {"token": text, **token_out(kept)}


@router.delete("/sites/{site}/tokens")
async def end_tokens(hub: Hub, site: str) -> dict[str, Any]:
    """Ends the unused enrolment tokens of a site; enrolled receivers are not affected."""
    return {"site": site, "ended": await hub.ledger.write(lambda book: book.tokens.end_pending(site))}


@router.delete("/sites/{site}/credentials", status_code=200)
async def revoke_credentials(
    hub: Hub, site: str, sha256: Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")] = None
) -> dict[str, Any]:
    """Revokes one credential of a site, or all; a connected receiver is disconnected immediately."""
    revoked = await hub.ledger.write(lambda book: book.credentials.revoke(book.sites.one(site).name, sha256))
    if sha256 is not None and revoked == 0:
        raise NotFound(f"site {site!r} has no usable credential {sha256}; `downburst sites show {site}` lists them")
    await _announce_sites(hub)
    return {"site": site, "revoked": revoked}


@router.post("/sites/{site}/credentials/replacement", status_code=202)
async def replace_credentials(hub: Hub, site: str) -> dict[str, Any]:
    """Has the receivers of a site replace their credentials when they are connected; their sessions continue."""
    asked = await hub.ledger.write(lambda book: book.credentials.ask(book.sites.one(site).name))
    if not asked:
        raise NotFound(f"site {site!r} has no good credential; enrol its receiver: downburst sites token {site}")
    await _announce_sites(hub)
    session = hub.live.sessions.get(site)
    connected = bool(session and session.connected)
    renews = session.renews if session and connected else None
    return {"site": site, "asked": len(asked), "connected": connected, "renews": renews}


@router.get("/subscriptions")
async def list_all_subscriptions(
    hub: Hub, page: Paged, *, feed: str | None = None, site: str | None = None
) -> list[dict[str, Any]]:
    """Every subscription, of a feed or site if given, oldest first."""
    wishes = await hub.ledger.read(lambda book: book.subscriptions.all())
    wanted = (wish for wish in wishes if feed in (None, wish.feed) and site in (None, wish.site))
    return page.of(map(subscription_out, wanted), "id")


@router.get("/sites/{site}/subscriptions")
async def list_subscriptions(hub: Hub, site: str, page: Paged) -> list[dict[str, Any]]:
    """The subscriptions of a site, oldest first."""
    wishes = await hub.ledger.read(lambda book: book.subscriptions.of_site(book.sites.one(site).name))
    return page.of(map(subscription_out, wishes), "id")


@router.post("/sites/{site}/subscriptions", status_code=201, responses={403: {}, 422: {}})
async def add_subscription(
    hub: Hub, caller: Asking, answer: Response, site: str, wanted: SubscriptionNew
) -> dict[str, Any]:
    """Subscribes a site to matching products; an invalid pattern is refused with the position."""
    await hub.ledger.read(lambda book: check_right(book, site, wanted.feed, caller))
    await check_pattern(hub.node, "pattern", wanted.pattern)
    if wanted.not_pattern is not None:
        await check_pattern(hub.node, "not_pattern", wanted.not_pattern)
    wish = _wish(hub, site, wanted)
    kept = await hub.ledger.write(lambda book: _subscribe(book, wish))
    await _announce_subscriptions(hub)
    return _tagged(subscription_out(kept), answer)


@router.delete("/subscriptions/{subscription}", status_code=204)
async def remove_subscription(hub: Hub, unchanged: Unchanged, subscription: Number) -> None:
    """Ends a subscription."""

    def remove(book: Book) -> None:
        _check_subscription(book.subscriptions.all(), subscription, unchanged)
        book.subscriptions.remove(subscription)

    await hub.ledger.write(remove)
    await _announce_subscriptions(hub)


@router.delete("/sites/{site}/subscriptions/{subscription}", status_code=204)
async def remove_subscription_of(hub: Hub, unchanged: Unchanged, site: str, subscription: Number) -> None:
    """Ends a subscription of this site."""

    def remove(book: Book) -> None:
        _check_subscription(book.subscriptions.of_site(site), subscription, unchanged)
        _remove_of(book, site, subscription)

    await hub.ledger.write(remove)
    await _announce_subscriptions(hub)


def _tagged(shown: dict[str, Any], answer: Response) -> dict[str, Any]:
    answer.headers["etag"] = etag(shown)
    return shown


def _seen(book: Book, name: str, unchanged: IfMatch) -> Site:
    """The site that a change is made to, if it is the one that was seen."""
    site = book.sites.one(name)
    unchanged.check(f"site {name}", site_out(site))
    return site


def _check_subscription(wishes: list[Subscription], number: int, unchanged: IfMatch) -> None:
    wish = next((wish for wish in wishes if wish.id == number), None)
    unchanged.check(f"subscription {number}", None if wish is None else subscription_out(wish))


def _troubles(hub: Runtime, site: str) -> dict[str, str]:
    """By feed, what a connected site says of its disk."""
    session = hub.live.sessions.get(site)
    if session is None or not session.connected:
        return {}
    return {feed.feed: feed.trouble for feed in session.progress.values() if feed.trouble}


def _heartbeats(hub: Runtime, site: str) -> dict[str, dict[str, Any]]:
    """By feed, of a connected site that answers for them: when the newest that came out was made, and what waits."""
    session = hub.live.sessions.get(site)
    if session is None or not session.connected:
        return {}
    return {
        feed.feed: {"came_out": _moment(feed.heartbeat_us), "waits_since": _moment(feed.heartbeat_waits_us)}
        for feed in session.progress.values()
        if feed.heartbeat_us or feed.heartbeat_waits_us
    }


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(microseconds)


def _reserved(book: Book, name: str) -> tuple[Site, list[Circuit], list[Measured]]:
    circuits = [circuit for circuit in book.circuits.begun() if name in circuit.sites]
    return book.sites.one(name), circuits, [row for row in book.circuits.measurements() if row.site == name]


def _whole_site(book: Book, name: str) -> dict[str, Any]:
    return site_out(book.sites.one(name)) | {
        "subscriptions": [subscription_out(wish) for wish in book.subscriptions.of_site(name)],
        "credentials": [credential_out(credential) for credential in book.credentials.of(name)],
        "tokens": [token_out(token) for token in book.tokens.of(name)],
    }


def _wish(hub: Runtime, site: str, wanted: SubscriptionNew) -> Subscription:
    given = wanted.model_dump(exclude={"start"})
    start = None if wanted.start == "now" else moment(wanted.start, hub.clock.now())
    return Subscription(0, site, start_at=start, **given)


def _subscribe(book: Book, wish: Subscription) -> Subscription:
    """Keeps the wish; one that begins in the past gets what the feed's log holds since then, less what it had."""
    check_right(book, wish.site, wish.feed)
    had = [one for one in book.subscriptions.of_site(wish.site) if one.feed == wish.feed]
    kept = book.subscriptions.add(wish)
    if wish.start_at is not None and kept.created_at is not None and wish.start_at < kept.created_at:
        book.resends.add(_backfill(kept, wish.start_at, kept.created_at, had))
    return kept


def _backfill(wish: Subscription, begin: datetime, end: datetime, had: list[Subscription]) -> Resend:
    return Resend(
        0,
        wish.site,
        wish.feed,
        begin,
        end,
        kind=ResendKind.BACKFILL,
        wanted=IdFilter(wish.pattern, wish.not_pattern),
        had=tuple(IdFilter(one.pattern, one.not_pattern) for one in had),
        requested_by=f"subscription {wish.id}",
    )


def _remove_of(book: Book, site: str, number: int) -> None:
    if all(wish.id != number for wish in book.subscriptions.of_site(book.sites.one(site).name)):
        raise NotFound(f"site {site!r} has no subscription {number}; `downburst subscriptions list {site}` shows all")
    book.subscriptions.remove(number)


async def _announce_subscriptions(hub: Runtime) -> None:
    await hub.node.refresh()
    hub.bus.publish(SubscriptionsChanged())


async def _announce_sites(hub: Runtime) -> None:
    await hub.node.refresh()
    hub.bus.publish(SitesChanged())
