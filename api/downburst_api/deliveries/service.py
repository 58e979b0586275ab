"""The ledger's context for some products, and the judgement of the node's facts by it for every site."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from downburst.deliveries import CircuitNow, Delivery, Known, PathNow, ProductFacts, SiteFacts, TcpThen, deliver
from downburst.domain.circuits import STANDING, Circuit, Direction, Measured
from downburst.domain.events import ActionFailed
from downburst.domain.feeds import Feed
from downburst.domain.receipts import ProductException, Settled
from downburst.domain.sites import Site
from downburst.domain.subscriptions import Subscription
from downburst.ledger import Transaction
from downburst.live.state import LiveState, SiteSession


@dataclass(frozen=True, slots=True)
class Context:
    """The ledger's context for some products."""

    feeds: dict[str, Feed]
    sites: dict[str, Site]
    enrolled: frozenset[str]
    subscriptions: Sequence[Subscription]
    settled: Sequence[Settled]
    exceptions: Sequence[ProductException]
    objectives_ms: Mapping[tuple[str, str], float]
    """Of feeds at single sites."""
    circuits: Mapping[str, tuple[CircuitNow, ...]]
    """By site."""

    def path(self, site: str, leg: int | None, live: LiveState, tcp: TcpThen | None = None) -> PathNow:
        """The path to a site at present, and the repair of a leg."""
        known, session = live.paths.of(site), live.session(site)
        trip_us = known.least_round_trip_us
        return PathNow(
            circuits=self.circuits.get(site, ()),
            tcp=tcp,
            round_trip_ms=None if trip_us is None else trip_us / 1000,
            resent_share=known.loss,
            repair_share=None if leg is None else live.repairs.share(leg),
            site_clock=None if session is None else session.clock,
        )

    def known(self, product: ProductFacts, site: str, live: LiveState) -> Known:
        """The facts about one site and one product."""
        registered = self.sites.get(site)
        session = live.session(site)
        connected = session is not None and session.connected
        frontiers = [
            report
            for report in self.settled
            if (report.feed, report.epoch, report.site) == (product.feed, product.epoch, site)
        ]
        return Known(
            allowed=registered is not None and registered.may_take(product.feed),
            allow=() if registered is None else registered.allow,
            limits=() if registered is None else registered.limits_of(product.feed),
            enrolled=site in self.enrolled,
            subscriptions=tuple(self._wishes(product.feed, site)),
            exception=next((one for one in self.exceptions if _is_of(one, product, site)), None),
            settled_to=max((report.settled_to for report in frontiers), default=None),
            connected=connected,
            last_seen_at=_last_seen(live, site, frontiers),
            away_reason=None if session is None or connected else session.reason,
            trouble=_trouble(session, product.feed),
            action_failed=_action_failed(session, product.feed),
            retention_hours=self.feeds[product.feed].retention_hours,
            objective_ms=self.objectives_ms.get((product.feed, site), self.feeds[product.feed].objective_ms),
            deadline_ms=self.feeds[product.feed].deadline_ms,
        )

    def facts(self, product: ProductFacts, told: Iterable[SiteFacts], site: str | None) -> list[SiteFacts]:
        """The node's facts, and the sites it has none of: those without a right, and the one asked for."""
        facts = {one.site: one for one in told}
        for name, registered in self.sites.items():
            wishes = self._wishes(product.feed, name)
            refused = bool(wishes) and not registered.may_take(product.feed)
            if name not in facts and site in (None, name) and (refused or site == name):
                facts[name] = SiteFacts(name, active=registered.active)
        return [facts[name] for name in sorted(facts)]

    def _wishes(self, feed: str, site: str) -> list[Subscription]:
        return [wish for wish in self.subscriptions if (wish.feed, wish.site) == (feed, site)]


def judged(product: ProductFacts, facts: SiteFacts, known: Known, now: datetime) -> Delivery:
    """The state of a product at a site."""
    # A site that was refused the feed has no subscriptions at the node, but wishes in the ledger.
    if known.subscriptions and not facts.subscriptions and known.allowed:
        facts = replace(facts, subscriptions=len(known.subscriptions))
    return deliver(product, facts, known, now=now)


def context_of(tx: Transaction, feeds: dict[str, Feed], products: Sequence[ProductFacts]) -> Context:
    """The context as of now."""
    names = {product.feed for product in products}
    return Context(
        feeds=feeds,
        sites={site.name: site for site in tx.sites.all()},
        enrolled=frozenset(credential.site for credential in tx.enrolment.credentials.usable()),
        subscriptions=[wish for name in names for wish in tx.subscriptions.of_feed(name)],
        settled=[report for name in names for report in tx.measured.settled.of_feed(name)],
        exceptions=[
            exception
            for product in products
            for exception in tx.measured.exceptions.of_product(product.feed, product.epoch, product.sequence)
        ],
        objectives_ms={(one.feed, one.site): one.objective_ms for one in tx.alerting.objectives.all()},
        circuits=_by_site(tx.circuits.begun(), tx.circuits.measurements()),
    )


def _by_site(circuits: Iterable[Circuit], measured: Iterable[Measured]) -> dict[str, tuple[CircuitNow, ...]]:
    """The circuits that are set up, by the sites that they join with the hub."""
    rates = {(row.circuit, row.site): row.rate_bps for row in measured if row.direction is Direction.OUT}
    found: dict[str, tuple[CircuitNow, ...]] = {}
    for circuit in circuits:
        for site in circuit.served_sites if circuit.state in STANDING else ():
            rate = rates.get((circuit.number, site))
            now = CircuitNow(circuit.number, circuit.usable_state, circuit.rate_out_bps, rate)
            found[site] = (*found.get(site, ()), now)
    return found


def _trouble(session: SiteSession | None, feed: str) -> str | None:
    if session is None or not session.connected or feed not in session.progress:
        return None
    return session.progress[feed].trouble


def _action_failed(session: SiteSession | None, feed: str) -> ActionFailed | None:
    """The site's last report of a failed action; valid while the site is away."""
    if session is None or feed not in session.progress:
        return None
    return session.progress[feed].action_failed


def _is_of(exception: ProductException, product: ProductFacts, site: str) -> bool:
    return (exception.epoch, exception.sequence, exception.site) == (product.epoch, product.sequence, site)


def _last_seen(live: LiveState, site: str, frontiers: Sequence[Settled]) -> datetime | None:
    session = live.session(site)
    if session is not None:
        return session.since
    return max((report.last_receipt_at for report in frontiers if report.last_receipt_at is not None), default=None)
