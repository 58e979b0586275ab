"""What system tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.node import HubNode, SiteNode, Subscribe


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HubNode]:
    """A hub's node without its agent, ended after the test."""
    hub = HubNode(tmp_path / "hub").start()
    yield hub
    hub.stop()


@pytest.fixture
def subscribe(node: HubNode, tmp_path: Path) -> Iterator[Subscribe]:
    """Starts receiving sites of the node, and ends those that a failed test left."""
    started: list[SiteNode] = []

    def start(name: str, feed: str, *, pattern: str = ".*", not_pattern: str | None = None) -> SiteNode:
        site = SiteNode(tmp_path / name, node.address)
        subscription = {"feed": feed, "pattern": pattern, "not_pattern": not_pattern}
        node.site(name, subscription, token_file=site.token_file)
        started.append(site.start())
        return site

    yield start
    for site in started:
        site.stop()
