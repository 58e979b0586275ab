"""Changes to TCP profiles: one that the node refuses is not stored."""

from contextlib import suppress

from downburst.domain.events import TcpProfilesChanged
from downburst.domain.tcp.profiles import TcpProfile
from downburst.foundation.errors import DownburstError, NodeAway
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime


async def put(hub: Runtime, wanted: TcpProfile) -> TcpProfile:
    """Stores a profile, and has the nodes apply it."""
    before, kept = await hub.ledger.write(lambda tx: _put(tx, wanted))
    try:
        await hub.node.apply_tcp_profiles()
    except NodeAway:
        pass
    except DownburstError:
        await hub.ledger.write(lambda tx: tx.fleet.tcp_profiles.restore(before, wanted.name))
        with suppress(DownburstError):
            await hub.node.apply_tcp_profiles()
        raise
    hub.bus.publish(TcpProfilesChanged())
    return kept


async def remove(hub: Runtime, name: str) -> None:
    """Removes a profile, and has the nodes take its values back."""
    await hub.ledger.write(lambda tx: tx.fleet.tcp_profiles.remove(name))
    with suppress(NodeAway):
        await hub.node.apply_tcp_profiles()
    hub.bus.publish(TcpProfilesChanged())


def _put(tx: Transaction, wanted: TcpProfile) -> tuple[TcpProfile | None, TcpProfile]:
    return tx.fleet.tcp_profiles.find(wanted.name), tx.fleet.tcp_profiles.put(wanted)
