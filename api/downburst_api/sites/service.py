"""Reads and changes sites: announces changes to the node, and checks patterns first."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from downburst.domain import subscriptions as subscriptions_domain
from downburst.domain.circuits import Circuit, Measured
from downburst.domain.credentials import Credential, EnrolmentToken
from downburst.domain.events import SitesChanged
from downburst.domain.relays import SiteWay
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Limit
from downburst.foundation.errors import NotFound
from downburst.ledger import Transaction
from downburst_api.border.site_rights import check_pattern
from downburst_api.http.etags import IfMatch
from downburst_api.runtime import Runtime
from downburst_api.sites.shapes import (
    backlog_out,
    heartbeats_out,
    own_clock_out,
    readings_out,
    standing_out,
    troubles_out,
)
from downburst_api.sites.standings import Standings
from downburst_contract import sites as shapes
from downburst_contract.subscriptions import Subscription


@dataclass(frozen=True, slots=True)
class Kept:
    """The ledger's data of one site."""

    site: Site
    subscriptions: list[subscriptions_domain.Subscription]
    credentials: list[Credential]
    tokens: list[EnrolmentToken]
    standings: Standings

    @classmethod
    def read(cls, tx: Transaction, name: str) -> "Kept":
        """Reads the data as of now."""
        site = tx.sites.one(name)
        wishes, credentials = tx.subscriptions.of_site(name), tx.enrolment.credentials.of(name)
        return cls(site, wishes, credentials, tx.enrolment.tokens.of(name), Standings.read(tx))


def listed(hub: Runtime, sites: Iterable[Site], standings: Standings) -> Iterable[shapes.SiteListed]:
    """Sites with their states, backlogs and faults."""
    now = hub.clock.now()
    for site in sites:
        yield shapes.SiteListed.of(
            site,
            relay=site.name in standings.relays,
            **standing_out(standings.of(site, hub.live)),
            **backlog_out(hub.live.backlog(site.name), now),
            troubles=troubles_out(hub.live.session(site.name)),
        )


def whole(hub: Runtime, kept: Kept) -> shapes.SiteWhole:
    """One site with all its objects."""
    name, session = kept.site.name, hub.live.session(kept.site.name)
    streams = session.streams if session and session.connected else None
    return shapes.SiteWhole.of(
        kept.site,
        subscriptions=[Subscription.of(one) for one in kept.subscriptions],
        credentials=[shapes.Credential.of(one) for one in kept.credentials],
        tokens=[shapes.Token.of(one) for one in kept.tokens],
        troubles=troubles_out(session),
        heartbeats=heartbeats_out(session),
        relay=name in kept.standings.relays,
        **standing_out(kept.standings.of(kept.site, hub.live)),
        **backlog_out(hub.live.backlog(name), hub.clock.now()),
        backlog=[one for _, one in sorted(hub.live.backlog_by_feed(name).items())],
        sites_address=list(hub.node.sites_address),
        session={
            "data_connections": None if streams is None else asdict(streams),
            "clock": own_clock_out(session),
            "readings": readings_out(session),
        },
    )


@dataclass(frozen=True, slots=True)
class Reserved:
    """The ledger's facts about the path to a site."""

    site: Site
    circuits: list[Circuit]
    measured: list[Measured]
    feeds: set[str]
    way: SiteWay | None


def reserved(tx: Transaction, name: str) -> Reserved:
    """A site with its circuits, their measurements, its feeds, and its way."""
    circuits = [circuit for circuit in tx.circuits.begun() if name in circuit.sites]
    measured = [row for row in tx.circuits.measurements() if row.site == name]
    feeds = {wish.feed for wish in tx.subscriptions.of_site(name)}
    return Reserved(tx.sites.one(name), circuits, measured, feeds, tx.fleet.ways.find(name))


async def check_patterns(hub: Runtime, *, ldm_host: str | None, limits: Iterable[Limit]) -> None:
    """Refuses patterns of a site that the node can't use."""
    if ldm_host is not None:
        await check_pattern(hub.node, "ldm_host", ldm_host)
    for limit in limits:
        await check_pattern(hub.node, "limits.pattern", limit.pattern)
        if limit.not_pattern is not None:
            await check_pattern(hub.node, "limits.not_pattern", limit.not_pattern)


def seen(tx: Transaction, name: str, unchanged: IfMatch) -> Site:
    """The site to change, if its tag matches."""
    site = tx.sites.one(name)
    unchanged.check(f"site {name}", shapes.Site.of(site))
    return site


async def revoke(hub: Runtime, site: str, sha256: str | None) -> int:
    """Revokes one credential of a site, or all; returns the number revoked."""
    revoked = await hub.ledger.write(lambda tx: tx.enrolment.credentials.revoke(tx.sites.one(site).name, sha256))
    if sha256 is not None and revoked == 0:
        raise NotFound(f"site {site!r} has no usable credential {sha256}; `downburst sites show {site}` lists them")
    await announce(hub)
    return revoked


async def replace_credentials(hub: Runtime, site: str) -> shapes.ReplacementAsked:
    """Has the connected receivers of a site replace their credentials."""
    asked: list[Any] = await hub.ledger.write(lambda tx: tx.enrolment.credentials.ask(tx.sites.one(site).name))
    if not asked:
        raise NotFound(f"site {site!r} has no good credential; enrol its receiver: downburst sites token {site}")
    await announce(hub)
    session = hub.live.session(site)
    connected = bool(session and session.connected)
    renews = session.renews if session and connected else None
    return shapes.ReplacementAsked(site=site, asked=len(asked), connected=connected, renews=renews)


async def announce(hub: Runtime) -> None:
    """Announces a change of sites to the node and all other parts."""
    await hub.node.refresh()
    hub.bus.publish(SitesChanged())
