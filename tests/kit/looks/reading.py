"""The hub of the questions of docs/page-questions.md: one with incidents, a relay and a product that was late."""

from downburst.domain.events import RelaySeen, SessionChanged
from downburst.domain.relays import RelayReport, Segment, SiteWay, Tunnel
from downburst.domain.relays.relay import FanOut, Relay
from downburst_api.runtime import Runtime
from kit.looks.fleet import LATE, NOW
from kit.looks.late_product import FEED, PRODUCT
from kit.looks.scenes import day, incident

SILENT = "bom.gov.au"
"""A site that sent no reports for three hours."""
BEHIND = ("cornell.edu", "unl.edu")
"""The sites behind the relay."""
WEEK_MINUTES = 7 * 24 * 60
PICTURES = {
    "a": "#/",
    "b": f"#/feeds?row={FEED}",
    "c": f"#/latency?feed={FEED}&site={LATE}&with={FEED}@unl.edu&minutes=1440&before=week",
    "d": f"#/map/{LATE}",
    "e": "#/tree",
    "f": f"#/trace/{PRODUCT}",
}
"""The addresses of the six pictures."""


def asked(hub: Runtime) -> None:
    """Fills the hub."""
    incident(hub, silent={SILENT: range(360, 540)})
    with hub.ledger.transaction() as tx:
        day(tx, [FEED], [LATE, "unl.edu"], minutes_ago=WEEK_MINUTES)
        tx.fleet.relays.put(Relay("prairie", "relay.prairie.example:7379", FanOut.UNICAST, BEHIND))
        for site in BEHIND:
            tx.fleet.ways.put(SiteWay(site, ("prairie",), "the relay is faster"))
    hub.live.apply(SessionChanged("prairie", "connected", NOW, "198.51.100.1:9"))
    near, onward = Segment(2_000, 0, "cubic", 10**8), Segment(21_000, 0, "bbr", 9 * 10**7)
    tunnel = Tunnel(
        "unl.edu", "192.0.2.9:1", "198.51.100.1:2", "hub:7370", 60.0, 12_000_000, 4_000, 1_600_000, near, onward
    )
    hub.live.apply(RelaySeen(NOW, RelayReport("prairie", (tunnel,))))
