"""Changes to upstreams: one that the node refuses is not stored."""

from contextlib import suppress
from typing import Any

from downburst.domain.upstreams import Upstream
from downburst.foundation.errors import DownburstError, NodeAway
from downburst.ledger import Transaction
from downburst_api.runtime import Runtime


async def add(hub: Runtime, upstream: Upstream) -> Upstream:
    """Stores an upstream, and has the node connect to it."""
    kept = await hub.ledger.write(lambda tx: _keep(tx, upstream))
    try:
        await hub.node.connect_upstreams()
    except NodeAway:
        pass
    except DownburstError:
        await hub.ledger.write(lambda tx: tx.fleet.upstreams.remove(upstream.name))
        with suppress(DownburstError):
            await hub.node.connect_upstreams()
        raise
    return kept


async def remove(hub: Runtime, upstream: str) -> None:
    """Removes an upstream; its products stay."""
    await hub.ledger.write(lambda tx: tx.fleet.upstreams.remove(upstream))
    with suppress(NodeAway):
        await hub.node.connect_upstreams()
    hub.live.upstreams.pop(upstream, None)


async def states(hub: Runtime) -> dict[str, dict[str, Any]]:
    """The node's report on each upstream; nothing while it is away."""
    with suppress(NodeAway):
        said = (await hub.node.status()).get("upstreams", [])
        return {one["upstream"]: one for one in said}
    return {}


def _keep(tx: Transaction, upstream: Upstream) -> Upstream:
    for feed in upstream.feeds:
        tx.feeds.one(feed)
    return tx.fleet.upstreams.add(upstream)
