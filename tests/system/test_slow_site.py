"""A site behind a link of half the group's rate leaves by itself: its link is free, the others notice nothing."""

import os
import time
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

SITES = ["site0", "site1", "site2"]
SLOW = SITES[1]
RATE_BPS = 24_000_000
PRODUCTS = 32
PRODUCT_BYTES = 500_000

# Five quarters of a second for the decision, and an allowance for a busy host.
LEAVING_S = 3.0


@pytest.mark.parametrize("snooping", [True, False], ids=["left alone by the switch", "flooded by the switch on"])
def test_a_site_that_the_group_floods_leaves_it_and_is_served_alone(tmp_path: Path, snooping: bool) -> None:
    needs("root", "netns", "veth", "bridge", "htb")
    with Lab(["hub", *SITES], snooping=snooping) as lab:
        hub, sites = start(lab, tmp_path)
        try:
            lab.rate(SLOW, down_bps=RATE_BPS // 2)
            began_us = time.time() * 1e6
            for number in range(PRODUCTS):
                hub.put("NGRID", f"product {number}", os.urandom(PRODUCT_BYTES))
            left = hub.wait_event(30.0, event="leg", site=SLOW, state="too-slow")
            assert left["leg"] == 70
            assert hub.drained(seconds=120)
            for site in sites.values():
                assert len(site.wait_received(PRODUCTS)) == PRODUCTS
            out_s = {name: last_file_s(site) - began_us / 1e6 for name, site in sites.items()}
        finally:
            for site in sites.values():
                site.stop()
            hub.stop()
    print(f"seconds until the last file: {out_s}")
    others = [event["site"] for event in hub.events_named("leg") if event["state"] != "joined"]
    assert set(others) == {SLOW}, "nobody else leaves"
    # If the switch continues to forward, nothing comes through before the others have everything. Then the
    # state that TCP learnt in the flood must not last.
    flooded_s = LEAVING_S if snooping else out_s[SITES[0]]
    link_s = PRODUCTS * PRODUCT_BYTES * 8 / (RATE_BPS / 2)
    assert out_s[SLOW] < flooded_s + 1.5 * link_s


def start(lab: Lab, directory: Path) -> tuple[HubNode, dict[str, SiteNode]]:
    listen = f"{lab.address('hub')}:7370"
    hub = HubNode(directory / "hub", listen=listen, interface=lab.address("hub"), prefix=lab.command("hub", []))
    hub.start()
    hub.feed("NGRID")
    sites = {}
    for name in SITES:
        site = SiteNode(directory / name, hub.address, prefix=lab.command(name, []))
        hub.site(name, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        sites[name] = site.start()
    hub.wait_connected(*SITES)
    hub.multicast("NGRID", 2, 70, rate_bps=RATE_BPS, sites=SITES)
    for name in SITES:
        hub.wait_event(event="leg", site=name, state="joined")
    return hub, sites


def last_file_s(site: SiteNode) -> float:
    return max(path.stat().st_mtime for path in (site.directory / "received").rglob("*") if path.is_file())
