"""The ends of a probe: whether its packets can take the path of the site's session."""

from downburst.domain.probes import ProbeRequest
from downburst.domain.relays import SiteWay
from downburst.live.state import LiveState
from downburst_probes.nodes import OWN, node_words


def wrong_end(request: ProbeRequest, live: LiveState, way: SiteWay | None, node: str) -> str:
    """The reason to refuse a probe whose packets would not take the path of the site's session; empty: none.

    `node` has that session. The site itself refuses as well; it knows its session better than the last report of a
    relay does.
    """
    site, relay = request.site, request.relay
    seen = relays_of(site, live)
    nearest = way.chain[0] if seen and way is not None and len(way.chain) > 1 else None
    if relay is None:
        if not seen:
            return ""
        instead = "probe over UDP from the relay" if request.over_tcp else "probe from the relay"
        return (
            f"the session of {site} comes by a relay, and packets of {node_words(node)} would not take that path; "
            f"{instead}: --from {nearest or seen[0]}"
        )
    if node != OWN:
        return f"{node_words(node)} serves {site}, and relay {relay} is connected to the hub's node; no node has both"
    if nearest is not None and relay != nearest:
        return f"{nearest} is the relay nearest to {site}; probe from it: --from {nearest}"
    if seen and nearest is None and relay not in seen:
        return f"the session of {site} comes by relay {seen[0]}; probe from it: --from {seen[0]}"
    return ""


def away_relay(request: ProbeRequest, live: LiveState) -> str:
    """The reason to wait for the relay of a probe; empty: none."""
    if request.relay is None:
        return ""
    session = live.sessions.get(request.relay)
    return "" if session is not None and session.connected else f"relay {request.relay} is not connected"


def relays_of(site: str, live: LiveState) -> list[str]:
    """The relays that reported a tunnel of a site."""
    return sorted(
        name
        for name, seen in live.relays.items()
        if any(tunnel.site == site and not tunnel.ended for tunnel in seen.report.tunnels)
    )
