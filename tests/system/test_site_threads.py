"""A site's session runs on one thread: each product would wake a second one."""

from pathlib import Path

import pytest

from kit.node import HubNode, SiteNode, Subscribe
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.alone]


def test_a_site_has_no_thread_of_a_pool(node: HubNode, subscribe: Subscribe) -> None:
    node.feed("NGRID")
    site = subscribe("one", "NGRID")
    node.wait_connected("one")
    for number in range(20):
        node.put("NGRID", f"product {number}", b"x" * 100 * number)
    assert wait_for("all products", lambda: len(site.received()) == 20)
    found = threads(site)
    assert {"store", "files"} < set(found), "and the session's own"
    assert not [name for name in found if name.startswith("tokio")], f"{found}; see `site_runtime` in main.rs"


def threads(site: SiteNode) -> list[str]:
    """The names of the process's threads."""
    return [comm.read_text().strip() for comm in Path(f"/proc/{site.process.pid}/task").glob("*/comm")]
