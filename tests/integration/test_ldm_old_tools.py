"""LDM's own tools, which speak version 5 with answers of their own, get everything from a hub."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.ldm.hub import ask, holds, hub_at, products, serve
from kit.ldm.tools import Feedme, Notifyme
from kit.ldm.wire import NGRID, OK, Product, Serving, connected

COUNT = int(os.environ.get("DOWNBURST_LDM_PRODUCTS", "10000"))


@pytest.fixture
def sent() -> list[Product]:
    """The products that the hub holds."""
    return [*products("SDUS54 KFWD", COUNT - 3, 300), *products("large", 2, 40_001), *products("empty", 1, 0)]


@pytest.fixture
def address(tmp_path: Path, sent: list[Product]) -> Iterator[str]:
    """The address at which a hub serves them."""
    upstream = Serving()
    upstream.put(*sent)
    with hub_at(tmp_path / "hub") as hub:
        ask(hub, upstream.address)
        holds(hub, COUNT)
        yield serve(hub)
    upstream.close()


def test_finding_05_notifyme_gets_ten_thousand_descriptions(address: str, sent: list[Product]) -> None:
    with connected(address) as wire:
        tool = Notifyme(wire)
        assert tool.notify_me((NGRID, ".*")) == OK
        got = tool.take(COUNT)
    assert tool.unknown == []
    assert [one.ident for one in got] == [one.ident for one in sent]


def test_finding_05_feedme_gets_ten_thousand_products(address: str, sent: list[Product]) -> None:
    with connected(address) as wire:
        tool = Feedme(wire)
        assert tool.feed_me((NGRID, ".*")) == OK
        got = tool.take(COUNT)
    assert tool.unknown == [], "feedme knows COMINGSOON and BLKDATA, and no HEREIS"
    assert [(one.ident, one.content) for one in got] == [(one.ident, one.content) for one in sent]
