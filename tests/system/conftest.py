"""Shared fixtures of system tests, and the order of their files."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from kit.capabilities import needs
from kit.node import HubNode, SiteNode, Subscribe
from kit.page_hub import PATIENCE_MS


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the files with the longest tests first, and then those with the most: the last ones are short.

    Last of all, so that tests that are not chosen do not count.
    """
    seconds, tests = Counter[Path](), Counter[Path]()
    for item in items:
        tests[item.path] += 1
        seconds[item.path] += sum(marker.args[0] for marker in item.iter_markers("long"))
    items.sort(key=lambda item: (-seconds[item.path], -tests[item.path]))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[HubNode]:
    """A hub's node without its agent, ended after the test."""
    hub = HubNode(tmp_path / "hub").start()
    yield hub
    hub.stop()


@pytest.fixture
def subscribe(node: HubNode, tmp_path: Path) -> Iterator[Subscribe]:
    """Starts receiving sites of the node, and ends those that remain after a failed test."""
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


@pytest.fixture
def browser() -> Iterator[Browser]:
    needs("chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    assert errors == []
