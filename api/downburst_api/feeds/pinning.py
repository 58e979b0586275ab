"""Reasons against a pin that do not depend on traffic: settings, unreserved circuits, groups of one."""

from downburst.domain.circuits import CircuitState
from downburst.domain.plans import Transport
from downburst.foundation.errors import ImpossiblePin
from downburst.ledger import Transaction
from downburst.settings.hub import Settings


def check_possible(tx: Transaction, settings: Settings, feed: str, transport: Transport) -> None:
    """Raises the reason why the feed can't use the transport; a feed without sites may be pinned in advance."""
    sites = sorted({wish.site for wish in tx.subscriptions.of_feed(feed)})
    why = _REASONS.get(transport, _none)(tx, settings, feed, sites)
    if why is not None:
        raise ImpossiblePin(f"{feed} can't be pinned to {transport}: {why}")


def _none(_tx: Transaction, _settings: Settings, _feed: str, _sites: list[str]) -> str | None:
    return None


def _multicast(_tx: Transaction, settings: Settings, feed: str, sites: list[str]) -> str | None:
    if not settings.multicast.of(feed).enabled:
        return "multicast is switched off for it in this hub's settings (multicast.enabled)"
    if len(sites) == 1:
        return f"only {sites[0]} takes it, and a group needs two sites"
    return None


def _static_circuit(tx: Transaction, _settings: Settings, _feed: str, sites: list[str]) -> str | None:
    circuits = (circuit for circuit in tx.circuits.unfinished() if circuit.state is not CircuitState.HELD)
    reserved = {site for circuit in circuits for site in circuit.served_sites}
    if not sites or reserved.intersection(sites):
        return None
    few = ", ".join(sites[:3]) + (f" and {len(sites) - 3} more" if len(sites) > 3 else "")
    return f"no circuit is reserved to {few}; reserve one: downburst circuits add --to {sites[0]} --rate 500M"


def _dynamic_circuit(tx: Transaction, _settings: Settings, _feed: str, sites: list[str]) -> str | None:
    owners = {port.name: port.site for port in tx.ports.all()}
    offers = tx.planning.offers.all()
    offered = {owners.get(port) for offer in offers for port in offer.ports if owners.get(offer.hub_port) is None}
    # A site behind relays may get its way over circuits between them.
    joined = {owners.get(port) for offer in offers for port in offer.ports} - offered
    chains = {site: tx.fleet.relays.ways_of(site) for site in sites} if joined else {}
    offered |= {site for site, found in chains.items() if joined.intersection(name for one in found for name in one)}
    if offered.intersection(sites) or (offered and not sites):
        return None
    few = f" to {', '.join(sites[:3])}" if sites else ""
    return f"no circuit on demand is offered{few}; describe the offer: downburst circuits offers set"


_REASONS = {
    Transport.MULTICAST: _multicast,
    Transport.STATIC_CIRCUIT: _static_circuit,
    Transport.DYNAMIC_CIRCUIT: _dynamic_circuit,
}
