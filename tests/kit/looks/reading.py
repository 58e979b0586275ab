"""The hub of the questions of docs/page-questions.md: one with incidents, a relay and a product that was late."""

from typing import Any

from downburst.domain.events import RelaySeen, SessionChanged
from downburst.domain.relays import RelayReport, Segment, SiteWay, Tunnel
from downburst.domain.relays.relay import FanOut, Relay
from downburst.foundation.clock import to_us
from downburst_api.runtime import Runtime
from factories import NodeStandIn
from kit.fake_node import FakeNode, Line
from kit.looks.scenes import DOWN, LATE, NOW, SITES, day, incident

SILENT = "bom.gov.au"
"""A site that sent no reports for three hours."""
BEHIND = ("cornell.edu", "unl.edu")
"""The sites behind the relay."""
FEED, PRODUCT = "NEXRAD2", "Level2_KOAX_20260314_1505.ar2v"
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
        "unl.edu", "192.0.2.9:1", "198.51.100.1:2", "hub:7370", 60.0, 10**9, 4_000, 132_000_000, near, onward
    )
    hub.live.apply(RelaySeen(NOW, RelayReport("prairie", (tunnel,))))
    _trace(hub)


def _trace(hub: Runtime) -> None:
    """The node has one product of the late feed: at the late site its transfer took the time."""
    node = hub.node
    assert isinstance(node, NodeStandIn)
    node.fake = _LateProduct(products={FEED: [(PRODUCT, "5d" * 32)]})
    wish = {"feed": FEED, "pattern": ".*", "not_pattern": None}
    node.fake.sites = {name: {"site": name, "active": True, "subscriptions": [wish]} for name in sorted(SITES)}
    for name in set(SITES) - {DOWN}:
        node.fake.ways[name] = {"receipts": [_receipt(14_200 if name == LATE else 300)]}


class _LateProduct(FakeNode):
    """A node whose product came four minutes before the scene."""

    def _product(self, feed: str, sequence: int) -> Line:
        return super()._product(feed, sequence) | {"created_us": STORED_US - 900_000, "stored_us": STORED_US}

    def _deliveries(self, job: Line) -> Line:
        return super()._deliveries(job) | {"at_us": to_us(NOW)}


def _receipt(transfer_ms: int) -> dict[str, Any]:
    first_us = STORED_US + 120_000
    last_us = first_us + 1_000 * transfer_ms
    return {
        "outcome": "stored",
        "lane": "live",
        "transport": "unicast",
        "leg": 1,
        "repaired": False,
        "first_byte_us": first_us,
        "last_byte_us": last_us,
        "site_stored_us": last_us + 40_000,
        "action_done_us": last_us + 60_000,
        "clock_offset_us": 0,
        "clock_bound_us": 500,
        "sent_before": [],
    }


STORED_US = to_us(NOW) - 240_000_000
