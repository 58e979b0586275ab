"""A site with a known access rate gets no more than that; neither its warnings nor other sites wait for it."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

ACCESS_BPS = 8_000_000
PRODUCTS, PRODUCT_BYTES = 40, 100_000
LONGEST_WARNING_S = 2.0
"""A loaded machine may take a second for anything; behind what waits the warning would come after four."""


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge")
    with Lab(["hub", "bounded", "free"]) as lab:
        yield lab


def test_a_bounded_site_gets_its_rate_and_its_warnings_at_once(lab: Lab, tmp_path: Path) -> None:
    hub = HubNode(tmp_path / "hub", listen="0.0.0.0:7370", prefix=lab.command("hub", []))
    hub.access_rates_bps["bounded"] = ACCESS_BPS
    with ExitStack() as stack:
        stack.callback(hub.stop)
        hub.start()
        hub.feed("NGRID")
        hub.feed("WARN", **{"class": "warning"})
        bounded, free = (start(lab, hub, tmp_path / name, stack) for name in ("bounded", "free"))
        hub.wait_connected("bounded", "free")
        began, before = time.monotonic(), received_bytes(lab, "bounded")
        for number in range(PRODUCTS):
            hub.put("NGRID", f"grid {number}", bytes([number]) * PRODUCT_BYTES)
        free.wait_received(PRODUCTS)
        put_at = time.monotonic()
        hub.put("WARN", "tornado", b"now")
        wait_for("the warning", lambda: ("WARN", 1) in bounded.received())
        warned_s = time.monotonic() - put_at
        waiting = PRODUCTS + 1 - len(bounded.received())
        bounded.wait_received(PRODUCTS + 1, seconds=60)
        took_s = time.monotonic() - began
        rate_bps = 8 * (received_bytes(lab, "bounded") - before) / took_s
        assert hub.drained()
    print(f"{rate_bps / 1e6:.1f} Mb/s at a site of {ACCESS_BPS / 1e6:.0f} Mb/s; the warning took {warned_s:.2f} s")
    assert rate_bps <= 1.1 * ACCESS_BPS
    assert took_s >= 0.9 * PRODUCTS * PRODUCT_BYTES * 8 / ACCESS_BPS
    assert waiting > 0, "nothing waited when the warning came: the machine was too slow to tell"
    assert warned_s < LONGEST_WARNING_S


def start(lab: Lab, hub: HubNode, directory: Path, stack: ExitStack) -> SiteNode:
    name = directory.name
    site = SiteNode(directory, f"{lab.address('hub')}:7370", prefix=lab.command(name, []))
    wishes = [{"feed": feed, "pattern": ".*", "not_pattern": None} for feed in ("NGRID", "WARN")]
    hub.site(name, *wishes, token_file=site.token_file)
    site.start()
    stack.callback(site.stop)
    return site


def received_bytes(lab: Lab, host: str) -> int:
    (link,) = json.loads(lab.output(host, ["ip", "-json", "-statistics", "link", "show", "eth0"]))
    return int(link["stats64"]["rx"]["bytes"])
