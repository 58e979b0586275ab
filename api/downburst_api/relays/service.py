"""Reads and changes relays: announces changes to the node and all other parts."""

from downburst.domain import relays
from downburst.ledger import Transaction
from downburst.live.site_states import SiteStanding
from downburst_api.runtime import Runtime
from downburst_api.sites.service import announce
from downburst_api.sites.standings import Standings
from downburst_contract.relays import Relay


async def shown(hub: Runtime) -> list[Relay]:
    """Every relay with its state and report."""
    found, sites, standings = await hub.ledger.read(
        lambda tx: (tx.fleet.relays.all(), {site.name: site for site in tx.sites.all()}, Standings.read(tx))
    )
    return [_shown(hub, relay, standings.of(sites[relay.name], hub.live)) for relay in found]


async def one(hub: Runtime, name: str) -> Relay:
    """One relay with its state and report."""
    relay, site, standings = await hub.ledger.read(
        lambda tx: (tx.fleet.relays.one(name), tx.sites.one(name), Standings.read(tx))
    )
    return _shown(hub, relay, standings.of(site, hub.live))


async def put(hub: Runtime, wanted: relays.Relay) -> None:
    """Stores a relay."""
    await hub.ledger.write(lambda tx: tx.fleet.relays.put(wanted))
    await announce(hub)


async def remove(hub: Runtime, name: str) -> None:
    """Removes a relay."""
    await hub.ledger.write(lambda tx: tx.fleet.relays.remove(name))
    hub.live.forget_site(name)
    await announce(hub)


async def log(hub: Runtime, name: str, *, before: int | None, limit: int) -> list[relays.LoggedTunnel]:
    """Records of a relay, newest first; refuses an unknown name."""

    def read(tx: Transaction) -> list[relays.LoggedTunnel]:
        return tx.fleet.relay_log.newest(tx.fleet.relays.one(name).name, before=before, limit=limit)

    return await hub.ledger.read(read)


def _shown(hub: Runtime, relay: relays.Relay, stands: SiteStanding) -> Relay:
    seen = hub.live.relays.get(relay.name)
    report = seen.report if seen is not None and stands.connected else None
    return Relay.of(
        relay,
        state=stands.state,
        state_words=stands.words,
        connected=stands.connected,
        reported_at=seen.at if seen else None,
        refused=seen.report.refused if seen else None,
        tunnels=list(report.tunnels) if report else [],
        legs=list(report.legs) if report else [],
    )
