"""Relays, with the sites behind them."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from downburst.domain.relays.relay import FanOut, Relay, chains_of, check_no_circle
from downburst.domain.sites import Site
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.repositories.feeds import Feeds
from downburst.ledger.repositories.sites import Sites, Subscriptions
from downburst.ledger.storage import limits
from downburst.ledger.tables.relays import relay_sites, relays
from downburst.ledger.tables.sites import sites


class Relays:
    """Relays by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)
        self._feeds = Feeds(connection, clock)
        self._sites = Sites(connection, clock)
        self._subscriptions = Subscriptions(connection, clock)

    def all(self) -> list[Relay]:
        """Every relay, by name."""
        behind: dict[str, list[str]] = {}
        for relay, site in self._connection.execute(select(relay_sites).order_by(relay_sites.c.site)):
            behind.setdefault(relay, []).append(site)
        query = select(relays, sites.c.allow).join(sites, sites.c.name == relays.c.name).order_by(relays.c.name)
        return [_relay(row, behind.get(row.name, [])) for row in self._connection.execute(query)]

    def find(self, name: str) -> Relay | None:
        """The relay, if there is one."""
        return next((relay for relay in self.all() if relay.name == name), None)

    def one(self, name: str) -> Relay:
        """The relay; refuses an unknown name."""
        found = self.find(name)
        if found is None:
            raise NotFound(f"there is no relay {name!r}; `downburst relays list` shows all, `relays add` creates one")
        return found

    def ways_of(self, site: str) -> tuple[tuple[str, ...], ...]:
        """The chains of relays from a site to the hub, nearest relay first; the direct way is not among them."""
        return chains_of(site, self.all())

    def put(self, wanted: Relay) -> Relay:
        """Adds a relay with its site record, or gives it exactly these values; refuses impossible ones."""
        self._check(wanted)
        before = self.find(wanted.name)
        if before is None:
            return self._add(wanted)
        changed = replace(wanted, created_at=before.created_at, sites=tuple(sorted(set(wanted.sites))))
        if changed == before:
            return before
        self._write(changed)
        self._audit.record(KIND, wanted.name, "changed", before=before, after=changed)
        return changed

    def remove(self, name: str) -> None:
        """Removes a relay and its site record, with tokens and credentials."""
        before = self.one(name)
        self._sites.remove(name)
        self._audit.record(KIND, name, "removed", before=before)

    def _add(self, wanted: Relay) -> Relay:
        limits.RELAYS.check(self._connection, relays, holder="this hub")
        if self._sites.find(wanted.name) is None:
            self._sites.add(Site(wanted.name, allow=wanted.feeds))
        kept = replace(wanted, created_at=self._clock.now(), sites=tuple(sorted(set(wanted.sites))))
        self._connection.execute(insert(relays).values(name=kept.name, created_at=kept.created_at))
        self._write(kept)
        self._audit.record(KIND, kept.name, "added", after=kept)
        return kept

    def _write(self, relay: Relay) -> None:
        own = {"address": relay.address, "fan_out": relay.fan_out and relay.fan_out.value}
        self._connection.execute(update(relays).where(relays.c.name == relay.name).values(**own))
        self._connection.execute(delete(relay_sites).where(relay_sites.c.relay == relay.name))
        if relay.sites:
            behind = [{"relay": relay.name, "site": site} for site in relay.sites]
            self._connection.execute(insert(relay_sites), behind)
        site = self._sites.one(relay.name)
        if site.allow != relay.feeds:
            self._sites.change(replace(site, allow=relay.feeds))

    def _check(self, wanted: Relay) -> None:
        for feed in wanted.feeds:
            if feed != "*":
                self._feeds.one(feed)
        for site in wanted.sites:
            self._sites.one(site)
        if self._subscriptions.of_site(wanted.name):
            raise AlreadyThere(
                f"site {wanted.name!r} has subscriptions, and a relay takes no products; choose another name, or "
                "remove them first"
            )
        record = self._sites.find(wanted.name)
        if record is not None and record.ldm_host is not None:
            raise AlreadyThere(f"site {wanted.name!r} uses LDM, so it can't be a relay; choose another name")
        check_no_circle(wanted, self.all())


def _relay(row: Row[Any], behind: list[str]) -> Relay:
    return Relay(
        name=row.name,
        address=row.address,
        fan_out=None if row.fan_out is None else FanOut(row.fan_out),
        sites=tuple(behind),
        feeds=tuple(row.allow),
        created_at=row.created_at,
    )


KIND = "relay"
