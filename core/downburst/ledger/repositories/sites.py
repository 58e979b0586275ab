"""Sites, and their subscriptions."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from downburst.domain.sites import CircuitAttachment, Place, Site
from downburst.domain.subscriptions import Limit, Subscription
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound
from downburst.foundation.names import is_feed_name
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.tables.relays import relays
from downburst.ledger.tables.sites import sites, subscriptions


class Sites:
    """Sites by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Site]:
        """Every site, by name."""
        return [_site(row) for row in self._connection.execute(select(sites).order_by(sites.c.name))]

    def find(self, name: str) -> Site | None:
        """The site, if there is one."""
        row = self._connection.execute(select(sites).where(sites.c.name == name)).one_or_none()
        return None if row is None else _site(row)

    def one(self, name: str) -> Site:
        """The site; refuses an unknown name."""
        site = self.find(name)
        if site is None:
            raise NotFound(f"there is no site {name!r}; `downburst sites list` shows all, `sites add` creates one")
        return site

    def add(self, site: Site) -> Site:
        """Adds a site; refuses a name that is taken."""
        if self.find(site.name) is not None:
            raise AlreadyThere(f"site {site.name!r} already exists; change it instead, or choose another name")
        limits.SITES.check(self._connection, sites, holder="this hub")
        self._connection.execute(insert(sites).values(_site_row(site) | {"created_at": self._clock.now()}))
        kept = self.one(site.name)
        self._audit.record("site", site.name, "added", after=kept)
        return kept

    def change(self, site: Site) -> Site:
        """Updates a site."""
        before = self.one(site.name)
        self._connection.execute(update(sites).where(sites.c.name == site.name).values(_site_row(site)))
        kept = self.one(site.name)
        self._audit.record("site", site.name, "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes a site with its credentials, tokens and subscriptions; its latencies stay as history."""
        before = self.one(name)
        self._connection.execute(delete(sites).where(sites.c.name == name))
        self._audit.record("site", name, "removed", before=before)


class Subscriptions:
    """Subscriptions of sites."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Subscription]:
        """Every subscription, oldest first."""
        return self._good(select(subscriptions).order_by(subscriptions.c.id))

    def of_site(self, site: str) -> list[Subscription]:
        """The subscriptions of a site, oldest first."""
        return self._good(select(subscriptions).where(subscriptions.c.site == site).order_by(subscriptions.c.id))

    def of_feed(self, feed: str) -> list[Subscription]:
        """The subscriptions to a feed, oldest first."""
        query = select(subscriptions).where(subscriptions.c.feed == feed).order_by(subscriptions.c.id)
        return [_subscription(row) for row in self._connection.execute(query)]

    def _good(self, query: Select[Any]) -> list[Subscription]:
        """The subscriptions to feeds with valid names; no node would understand the others."""
        return [_subscription(row) for row in self._connection.execute(query) if is_feed_name(row.feed)]

    def pairs(self) -> set[tuple[str, str]]:
        """Feed and site of every subscription, with any pattern."""
        query = select(subscriptions.c.feed, subscriptions.c.site).distinct()
        return {(feed, site) for feed, site in self._connection.execute(query)}

    def find(self, subscription_id: int) -> Subscription | None:
        """The subscription, if there is one."""
        query = select(subscriptions).where(subscriptions.c.id == subscription_id)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _subscription(row)

    def add(self, wish: Subscription) -> Subscription:
        """Adds a wish under a new number; its own id is ignored."""
        self._check_no_relay(wish.site)
        of_site = subscriptions.c.site == wish.site
        limits.SUBSCRIPTIONS_OF_SITE.check(self._connection, subscriptions, of_site, holder=f"site {wish.site!r}")
        row = asdict(wish) | {"created_at": self._clock.now()}
        del row["id"]
        key = self._connection.execute(insert(subscriptions).values(row)).inserted_primary_key
        kept = None if key is None else self.find(int(key[0]))
        if kept is None:
            raise NotFound("the subscription was removed while it was created; try again")
        self._audit.record("subscription", f"{kept.id} of {kept.site}", "added", after=kept)
        return kept

    def _check_no_relay(self, site: str) -> None:
        if self._connection.scalar(select(relays.c.name).where(relays.c.name == site)) is not None:
            raise BadInput(f"{site!r} is a relay, which takes no products; subscribe a site behind it")

    def remove(self, subscription_id: int) -> None:
        """Removes a subscription."""
        before = self.find(subscription_id)
        if before is None:
            raise NotFound(f"there is no subscription {subscription_id}; `downburst subscriptions list` shows all")
        self._connection.execute(delete(subscriptions).where(subscriptions.c.id == subscription_id))
        self._audit.record("subscription", f"{before.id} of {before.site}", "removed", before=before)


def _site(row: Row[Any]) -> Site:
    attachment = None
    if row.circuit_port is not None:
        attachment = CircuitAttachment(row.circuit_port, row.first_vlan, row.last_vlan)
    return Site(
        name=row.name,
        organisation=row.organisation,
        contact=row.contact,
        place=Place(row.place_text, row.latitude, row.longitude),
        multicast_interface=row.multicast_interface,
        circuit_attachment=attachment,
        access_rate_bps=row.access_rate_bps,
        ceiling_mbps_by_hour=tuple(row.ceiling_mbps_by_hour),
        allow=tuple(row.allow),
        limits=tuple(Limit(**limit) for limit in row.limits or () if is_feed_name(limit["feed"])),
        multicast=row.multicast,
        active=row.active,
        data_connections=row.data_connections,
        created_at=row.created_at,
        ldm_host=row.ldm_host,
    )


def _site_row(site: Site) -> dict[str, Any]:
    attachment = site.circuit_attachment
    return {
        "name": site.name,
        "organisation": site.organisation,
        "contact": site.contact,
        "place_text": site.place.text,
        "latitude": site.place.latitude,
        "longitude": site.place.longitude,
        "multicast_interface": site.multicast_interface,
        "circuit_port": attachment.port if attachment else None,
        "first_vlan": attachment.first_vlan if attachment else None,
        "last_vlan": attachment.last_vlan if attachment else None,
        "access_rate_bps": site.access_rate_bps,
        "ceiling_mbps_by_hour": list(site.ceiling_mbps_by_hour),
        "allow": list(site.allow),
        "limits": [asdict(limit) for limit in site.limits],
        "multicast": site.multicast,
        "active": site.active,
        "data_connections": site.data_connections,
        "ldm_host": site.ldm_host,
    }


def _subscription(row: Row[Any]) -> Subscription:
    return Subscription(**row._mapping)
