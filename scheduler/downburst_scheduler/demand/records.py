"""The ledger's records of circuits on demand, as the planner and the acting loop read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from downburst.domain.circuits import Circuit, Port
from downburst.domain.ordering import DemandOrder, Offer, Setups
from downburst.domain.relays import SiteWay
from downburst.ledger import Transaction
from downburst_scheduler.demand.cores import Ends, ends_for


@dataclass(frozen=True, slots=True)
class Terms:
    """The operator's offers at one moment, and the ways of sites."""

    offers: Mapping[str, Offer] = field(default_factory=dict)
    ports: Mapping[str, Port] = field(default_factory=dict)
    setups: Mapping[str, Setups] = field(default_factory=dict)
    ways: Mapping[str, SiteWay] = field(default_factory=dict)

    @classmethod
    def of(cls, tx: Transaction) -> "Terms":
        """The ledger's contents."""
        offers = {offer.name: offer for offer in tx.planning.offers.all()}
        ways = {way.site: way for way in tx.fleet.ways.all()}
        if not offers:
            return cls(ways=ways)
        ports = {port.name: port for port in tx.ports.all()}
        return cls(offers, ports, tx.planning.orders.setups(list(offers)), ways)

    def setup_s(self, offer: str) -> float:
        """The set-up time to expect: measured, or the provider's statement."""
        return self.offers[offer].expected_setup_s(self.setups.get(offer))

    def ends(self, offer: str, site: str) -> Ends | None:
        """The ends of a circuit for a site; None if the offer has none there, or not on the site's way."""
        known = self.offers.get(offer)
        return None if known is None else ends_for(known, self.ports, site, self.ways.get(site))


@dataclass(frozen=True, slots=True)
class OpenOrders:
    """The orders with a circuit that may exist, and these circuits, at one moment."""

    orders: Mapping[tuple[str, str], DemandOrder] = field(default_factory=dict)
    """By feed and site."""
    circuits: Mapping[int, Circuit] = field(default_factory=dict)
    """By the order's number."""

    @classmethod
    def of(cls, tx: Transaction) -> "OpenOrders":
        """The ledger's contents."""
        orders = tx.planning.orders.open()
        found = {order.number: tx.circuits.of_request(order.request_id) for order in orders}
        return cls(
            {(order.feed, order.site): order for order in orders},
            {number: circuit for number, circuit in found.items() if circuit is not None},
        )
