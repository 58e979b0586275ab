"""The facts about a feed's sites at one moment, with the relays and circuits that may serve them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from downburst.domain.feeds import Feed
from downburst.domain.plans import Plan
from downburst.foundation.clock import Clock
from downburst_scheduler.lines import LineWatch
from downburst_scheduler.models.offers import RelayOffer, without
from downburst_scheduler.models.situation import SiteFacts
from downburst_scheduler.models.transports import stepped
from downburst_scheduler.paths import SitePaths
from downburst_scheduler.relays import RelayWatch
from downburst_scheduler.states import FeedState, Known, groups_of


@dataclass(slots=True)
class SiteView:
    """Measured paths and relays, joined with the configuration."""

    paths: SitePaths
    relays: RelayWatch
    clock: Clock
    lines: LineWatch
    sure_s: float = 0.0
    """The time from which a relay without a report has no session."""

    def sites(
        self, feed: Feed, plan: Plan | None, known: Known, feeds: Mapping[str, FeedState]
    ) -> tuple[SiteFacts, ...]:
        """The sites that take the feed."""
        inside = {site for leg in groups_of(plan) for site in leg.sites}
        now = self.clock.now()
        found = (
            self.paths.site(site, feed.name, wishes, now=now, in_group=site.name in inside)
            for site, wishes in known.subscribers.get(feed.name, ())
        )
        lossy = (self._with_line(site, feed.name) for site in found)
        swept = (_with_sweep(site, known, now) for site in lossy)
        with_relays = (self._with_relay(site, feed.name, known, plan) for site in swept)
        with_circuits = (_with_circuit(site, feed.name, known, feeds) for site in with_relays)
        return tuple(self._with_offer(site, feed.name, known) for site in with_circuits)

    def _with_line(self, site: SiteFacts, feed: str) -> SiteFacts:
        """A site with the rate that its losses in groups leave, unless its access rate is lower."""
        usable_bps = self.lines.line(feed, site.name).usable_bps
        if usable_bps is None or (site.access_bps is not None and site.access_bps <= usable_bps):
            return site
        return replace(site, access_bps=usable_bps, lossy=self.lines.words(feed, site.name))

    def _with_offer(self, site: SiteFacts, feed: str, known: Known) -> SiteFacts:
        """A site with the circuits on demand that can be ordered to it, unless none could carry the feed.

        Circuits to the site itself come before those that carry the core of its way.
        """
        if site.keeps_ldm or (feed, site.name) in known.placed:
            return site
        # A spent budget ends no order that is open.
        has_order = (feed, site.name) in known.demand.opened.orders
        offer = known.demand.offers.get(site.name)
        if offer is not None:
            return replace(site, demand=replace(offer, spent=None) if has_order else offer)
        way = known.ways.get(site.name)
        core, core_offer = known.demand.core_of(site.name, way)
        if core is None or core_offer is None:
            return site
        offer = replace(core_offer, core=core, spent=None if has_order else core_offer.spent)
        if way is None or core not in way.cores:
            why = f"a site's way does not go over {core.said}, which circuits of the offer {offer.offer} join"
            return replace(site, demand=replace(offer, spent=why))
        beside_bps = self.relays.beside_bps(way, core)
        if beside_bps is None:
            why = f"the other segments of a way over {core.said} have no known rate yet"
            return replace(site, demand=replace(offer, spent=why))
        rate_bps = min(beside_bps * site.connections, site.access_bps or math.inf)
        return replace(site, demand=replace(offer, beside_bps=stepped(rate_bps)))

    def _with_relay(self, site: SiteFacts, feed: str, known: Known, plan: Plan | None) -> SiteFacts:
        """A site with the relay that may hand the feed out to it, and with both segments if its session is on one."""
        now_s = self.clock.monotonic_s()
        offer, segments = self._offer_to(site.name, feed, known, plan), self.relays.edge(site.name, now_s)
        if segments is None:
            return site if offer is None else replace(site, relay=offer)
        core, edge = segments
        return replace(
            site,
            relay=offer,
            round_trip_s=core.round_trip_s,
            loss=core.loss,
            congestion=core.congestion,
            edge=edge,
        )

    def _offer_to(self, site: str, feed: str, known: Known, plan: Plan | None) -> RelayOffer | None:
        """The widest relay that may hand the feed out to the site; of equal ones that with the first name."""
        before = known.relays.get(site)
        if before is None or (feed, site) in known.placed:
            return None
        able = [relay for relay in before if relay.may_carry(feed) and self._is_up(relay.name, plan)]
        offers = [self.relays.offer(relay.name, relay.fan_out) for relay in able if relay.fan_out]
        return max(offers, key=lambda one: one.core_bps or math.inf, default=None)

    def _is_up(self, relay: str, plan: Plan | None) -> bool:
        """True if the relay has a session; after a restart, a relay in use is given the time to report."""
        now_s = self.clock.monotonic_s()
        if now_s >= self.sure_s or self.relays.is_up(relay, now_s):
            return self.relays.is_up(relay, now_s)
        return any(leg.relay == relay for leg in groups_of(plan))


def _with_sweep(site: SiteFacts, known: Known, now: datetime) -> SiteFacts:
    """A site with the last sweep of its path, if that is recent."""
    found = known.sweeps.get(site.name)
    return site if found is None or not found.counts(now) else replace(site, sweep=found.sweep)


def _with_circuit(site: SiteFacts, feed: str, known: Known, feeds: Mapping[str, FeedState]) -> SiteFacts:
    """A site with the capacity of its circuit that other feeds leave."""
    sender = known.placed.get((feed, site.name), "")
    offer = known.circuits.to(site.name, sender)
    if site.keeps_ldm:
        why = None if offer is None else f"{site.name}: an LDM's connection is bound to no circuit"
        return replace(site, no_circuit=why)
    if offer is None:
        why = known.circuits.why_not(site.name, sender)
        return replace(site, no_circuit=why) if why is not None else site
    used_bps = sum(state.used_bps(site.name) for name, state in feeds.items() if name != feed)
    return replace(site, circuit=without(offer, used_bps))
