"""A product that a site got late and another one waits for, as the node tells of it."""

from datetime import timedelta
from typing import Any

from downburst.foundation.clock import to_us
from downburst_api.runtime import Runtime
from factories import NodeStandIn
from kit.fake_node import FakeNode, Line
from kit.looks.fleet import DOWN, LATE, NOW, SITES

FEED, PRODUCT = "NEXRAD2", "Level2_KOAX_20260314_1505.ar2v"


def traced(hub: Runtime) -> None:
    """The node has one product of the late feed: at the late site its transfer took the time."""
    with hub.ledger.transaction() as tx:
        for site in SITES:
            tx.enrolment.tokens.add(site, f"token of {site}", lifetime=timedelta(hours=1))
            tx.enrolment.tokens.consume(f"token of {site}", f"credential of {site}", peer="192.0.2.1:5")
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
