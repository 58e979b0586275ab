"""Offers of circuits on demand."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, select

from downburst.domain.ordering.offers import LINUX, Budget, Offer, at_sender, checked_offer
from downburst.domain.ordering.orders import OPEN
from downburst.foundation.clock import Clock
from downburst.foundation.errors import AlreadyThere, BadInput, NotFound
from downburst.ledger.repositories.audit import Audit
from downburst.ledger.storage import limits
from downburst.ledger.storage.rows import put
from downburst.ledger.tables.circuits import circuit_ports
from downburst.ledger.tables.ordering import circuit_offers, circuit_providers, demand_orders
from downburst.ledger.tables.relays import relays


class Offers:
    """Offers by name."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._audit = Audit(connection, clock)

    def all(self) -> list[Offer]:
        """Every offer, by name."""
        query = select(circuit_offers).order_by(circuit_offers.c.name)
        return [_offer(row) for row in self._connection.execute(query)]

    def find(self, name: str) -> Offer | None:
        """The offer, if there is one."""
        row = self._connection.execute(select(circuit_offers).where(circuit_offers.c.name == name)).one_or_none()
        return None if row is None else _offer(row)

    def one(self, name: str) -> Offer:
        """The offer; refuses an unknown name."""
        found = self.find(name)
        if found is None:
            raise NotFound(f"there is no offer {name!r}; `downburst circuits offers list` shows all")
        return found

    def put(self, wanted: Offer) -> Offer:
        """Adds an offer, or gives it exactly these values; refuses impossible ones and unknown ports or providers."""
        self._check(checked_offer(wanted))
        before = self.find(wanted.name)
        if before is None:
            limits.CIRCUIT_OFFERS.check(self._connection, circuit_offers, holder="this hub")
        kept = replace(wanted, created_at=self._clock.now() if before is None else before.created_at)
        if kept == before:
            return kept
        put(self._connection, circuit_offers, _row(kept))
        self._audit.record(KIND, kept.name, "added" if before is None else "changed", before=before, after=kept)
        return kept

    def remove(self, name: str) -> None:
        """Removes an offer; refused while a circuit that was ordered under it is in use."""
        before = self.one(name)
        used = select(demand_orders.c.number).where(demand_orders.c.offer == name, demand_orders.c.step.in_(_OPEN))
        order = self._connection.scalar(used)
        if order is not None:
            raise AlreadyThere(
                f"offer {name!r} is needed by order {order}; its circuit ends soon after "
                f"`downburst circuits offers set {name} --orders-a-day 0`"
            )
        self._connection.execute(delete(circuit_offers).where(circuit_offers.c.name == name))
        self._audit.record(KIND, name, "removed", before=before)

    def _check(self, offer: Offer) -> None:
        columns = circuit_ports.c
        query = select(columns.name, columns.site, columns.sender, columns.rate_bps)
        ports = {row.name: row for row in self._connection.execute(query)}
        for name in (offer.hub_port, *offer.ports):
            if name not in ports:
                raise NotFound(f"offer {offer.name}: there is no port {name!r}; `downburst ports list` shows all")
        for name in offer.ports:
            if ports[name].site is None:
                raise BadInput(f"offer {offer.name}: port {name} is the hub's; name ports of sites")
        if ports[offer.hub_port].sender is not None:
            raise BadInput(f"offer {offer.name}: {at_sender(offer.hub_port, ports[offer.hub_port].sender)}")
        if ports[offer.hub_port].site is not None:
            self._check_core(offer, {name: ports[name].site for name in (offer.hub_port, *offer.ports)})
        least_bps = min(ports[name].rate_bps for name in (offer.hub_port, *offer.ports))
        if offer.rates_bps[0] > least_bps:
            raise BadInput(f"offer {offer.name}: its lowest rate is above the rate of a port; lower it")
        known = select(circuit_providers.c.name).where(circuit_providers.c.name == offer.provider)
        if offer.provider != LINUX and self._connection.scalar(known) is None:
            raise NotFound(
                f"offer {offer.name}: there is no provider {offer.provider!r}; "
                "`downburst circuits providers list` shows all"
            )

    def _check_core(self, offer: Offer, owners: Mapping[str, str]) -> None:
        """Circuits that do not begin at the hub join relays: they carry the long segment of a way over both."""
        splicing = set(self._connection.scalars(select(relays.c.name).where(relays.c.address.is_not(None))))
        if owners[offer.hub_port] not in splicing:
            raise BadInput(
                f"offer {offer.name}: port {offer.hub_port} is neither the hub's nor that of a relay with an "
                "address; name one of these"
            )
        for name in offer.ports:
            if owners[name] not in splicing:
                raise BadInput(
                    f"offer {offer.name}: port {name} is not that of a relay with an address; circuits from relay "
                    f"{owners[offer.hub_port]} end at other relays"
                )
            if owners[name] == owners[offer.hub_port]:
                raise BadInput(
                    f"offer {offer.name}: ports {offer.hub_port} and {name} are both those of relay "
                    f"{owners[name]}; name a port of another one"
                )
        if offer.provider != LINUX:
            raise BadInput(
                f"offer {offer.name}: provider {offer.provider} makes no circuits between relays; only the hub's own "
                f"nodes do, by {LINUX}"
            )


def _row(offer: Offer) -> dict[str, Any]:
    row = {name: value for name, value in asdict(offer).items() if name != "budget"}
    return row | asdict(offer.budget) | {"ports": list(offer.ports), "rates_bps": list(offer.rates_bps)}


def _offer(row: Row[Any]) -> Offer:
    values = dict(row._mapping)
    budget = Budget(values.pop("circuit_hours"), values.pop("orders"))
    values["ports"], values["rates_bps"] = tuple(values["ports"]), tuple(values["rates_bps"])
    return Offer(**values, budget=budget)


KIND = "circuit offer"
_OPEN = tuple(step.value for step in OPEN)
