"""Changes to LDM's sources and permissions: a source that the node refuses is not stored."""

from contextlib import suppress
from typing import Any

from downburst.domain.upstreams import LdmAccept, LdmSource
from downburst.foundation.errors import DownburstError, NodeAway
from downburst.ldm.feed_types import parse_feed_type
from downburst.ledger import Transaction
from downburst_api.border.site_rights import check_pattern
from downburst_api.runtime import Runtime


async def add_source(hub: Runtime, source: LdmSource) -> LdmSource:
    """Stores a source, and has the node request its products."""
    await check_pattern(hub.node, "pattern", source.pattern)
    kept = await hub.ledger.write(lambda tx: tx.ldm.sources.add(source))
    try:
        await hub.node.connect_ldm()
    except NodeAway:
        pass
    except DownburstError:
        await hub.ledger.write(lambda tx: tx.ldm.sources.remove(source.name))
        with suppress(DownburstError):
            await hub.node.connect_ldm()
        raise
    return kept


async def change_source(hub: Runtime, name: str, source: LdmSource) -> LdmSource:
    """Gives a source exactly these properties."""
    await check_pattern(hub.node, "pattern", source.pattern)
    _, kept = await hub.ledger.write(lambda tx: (tx.ldm.sources.one(name), tx.ldm.sources.change(source)))
    await reconnect(hub)
    return kept


async def remove_source(hub: Runtime, name: str) -> None:
    """Removes a source; its products stay."""
    await hub.ledger.write(lambda tx: tx.ldm.sources.remove(name))
    await reconnect(hub)
    for key in [key for key in hub.live.ldm.sources if key[0] == name]:
        del hub.live.ldm.sources[key]


async def add_accept(hub: Runtime, line: LdmAccept) -> LdmAccept:
    """Permits hosts to push products."""
    await check_pattern(hub.node, "pattern", line.pattern)
    await check_pattern(hub.node, "host", line.host)
    kept = await hub.ledger.write(lambda tx: tx.ldm.accepts.add(line))
    await reconnect(hub)
    return kept


async def reconnect(hub: Runtime) -> None:
    """Has the node apply the ledger's settings; a node that is away applies them when it is back."""
    with suppress(NodeAway):
        await hub.node.connect_ldm()


async def status(hub: Runtime) -> dict[str, Any]:
    """The node's report on LDMs; nothing while it is away."""
    with suppress(NodeAway):
        found: dict[str, Any] = (await hub.node.status()).get("ldm", {})
        return found
    return {}


def routed(tx: Transaction) -> int:
    """The bits of all feed types that are routed to a feed."""
    bits = 0
    for feed in tx.feeds.all():
        if feed.ldm_feed_type:
            bits |= parse_feed_type(feed.ldm_feed_type)
    return bits
