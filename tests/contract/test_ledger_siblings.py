"""The exchanges of sites with their siblings in the ledger, and the account of the bytes saved."""

from dataclasses import replace

import pytest

from downburst.domain.feeds import Feed
from downburst.domain.relays import Relay
from downburst.domain.relays.siblings import Saved, SiblingExchange
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BadInput
from downburst.ledger import Transaction
from downburst.ledger.repositories.audit import Changes

OSLO = SiblingExchange("oslo", "oslo.example:7380", 1_000, 2_000, "anna")


@pytest.fixture
def sited(tx: Transaction) -> Transaction:
    for feed in ("NGRID", "NEXRAD2"):
        tx.feeds.add(Feed(feed))
    for name in ("oslo", "bergen"):
        tx.sites.add(Site(name))
    return tx


def test_an_exchange_comes_back_whole_and_is_audited(sited: Transaction, clock: FakeClock) -> None:
    siblings = sited.fleet.siblings
    kept = siblings.put(OSLO)
    assert kept == replace(OSLO, set_at=clock.now()) == siblings.find("oslo")
    siblings.put(replace(OSLO, address=None))
    siblings.put(SiblingExchange("bergen"))
    assert [(one.site, one.address) for one in siblings.all()] == [("bergen", None), ("oslo", None)]
    siblings.remove("oslo")
    siblings.remove("oslo")
    assert siblings.find("oslo") is None
    changes = sited.access.audit.page(Changes(kind="siblings of site"))
    assert sorted(change.action for change in changes) == ["added", "added", "changed", "removed"]


def test_a_relay_holds_no_products(sited: Transaction) -> None:
    sited.fleet.relays.put(Relay("campus", "relay.campus.edu:7379"))
    with pytest.raises(BadInput, match="'campus' is a relay"):
        sited.fleet.siblings.put(SiblingExchange("campus"))


@pytest.mark.parametrize("address", ["oslo", ":7380", "oslo:", "oslo:0", "oslo:70000", "oslo:x", f"{'a' * 300}:1"])
def test_an_impossible_address_is_refused(address: str) -> None:
    with pytest.raises(BadInput, match="write HOST:PORT"):
        SiblingExchange("oslo", address)


def test_savings_add_up_and_outlive_the_exchange(sited: Transaction) -> None:
    siblings = sited.fleet.siblings
    siblings.put(OSLO)
    siblings.count([Saved("oslo", "NGRID", 3, 900), Saved("bergen", "NGRID", 1, 10)])
    siblings.count([Saved("oslo", "NGRID", 1, 100), Saved("oslo", "NEXRAD2", 2, 50)])
    siblings.count([Saved("gone", "NGRID", 1, 1), Saved("oslo", "GONE", 1, 1)])
    siblings.count([])
    siblings.remove("oslo")
    assert siblings.savings("oslo") == [Saved("oslo", "NEXRAD2", 2, 50), Saved("oslo", "NGRID", 4, 1_000)]
    assert len(siblings.savings()) == 3
    sited.sites.remove("oslo")
    assert siblings.savings() == [Saved("bergen", "NGRID", 1, 10)]
