"""A group so large that most losses are not requested: its sites report them, and the leg follows."""

import re
import secrets
import time
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.nightly, pytest.mark.alone]

SITES = [f"site{number:02}" for number in range(36)]
ASKED_BPS, CARRIED_BPS = 12_000_000, 6_000_000
PRODUCT_BYTES = 100_000
PRODUCTS = 160


def test_a_crowd_behind_a_narrow_uplink_is_sent_what_it_carries(tmp_path: Path) -> None:
    needs("netns", "htb")
    with Lab(["hub", *SITES]) as lab:
        prefix = lab.command("hub", [])
        hub = HubNode(tmp_path / "hub", listen=f"{lab.address('hub')}:0", interface="eth0", prefix=prefix).start()
        hub.feed("NGRID")
        sites = {name: SiteNode(tmp_path / name, hub.address, prefix=lab.command(name, [])) for name in SITES}
        try:
            for name, site in sites.items():
                wish = {"feed": "NGRID", "pattern": ".*", "not_pattern": None}
                hub.site(name, wish, token_file=site.token_file)
                site.start()
            hub.wait_connected(*SITES)
            hub.multicast("NGRID", 2, 78, ASKED_BPS, SITES)
            for name in SITES:
                hub.wait_event(event="leg", site=name, state="joined")
            lab.rate("hub", up_bps=CARRIED_BPS, buffer_bytes=64_000)
            rates = rates_while_busy(hub)
            print(f"rates after {ASKED_BPS}: {rates}")
            assert hub.drained(seconds=240)
            wait_for("files everywhere", lambda: all(len(site.received()) == PRODUCTS for site in sites.values()), 60)
            assert min(rates[:3]) < ASKED_BPS
            later = rates[3:]
            assert later, "it never found its rate"
            assert sum(rate <= CARRIED_BPS * 1.4 for rate in later) >= len(later) * 0.8, rates
        finally:
            for site in sites.values():
                site.stop()
            hub.stop()


def rates_while_busy(hub: HubNode) -> list[int]:
    """Offers twice the rate of the link for a while; returns the rates that the leg took during that time."""
    for number in range(PRODUCTS):
        hub.put("NGRID", f"grid {number}", secrets.token_bytes(PRODUCT_BYTES))
    end_s = time.monotonic() + PRODUCTS * PRODUCT_BYTES * 8 / CARRIED_BPS * 0.8
    log = hub.directory / "hub.log"
    wait_for("time in which the leg is busy", lambda: time.monotonic() > end_s)
    told = re.findall(r"follows the losses of its sites leg=78 rate_bps=(\d+)", log.read_text())
    return [int(rate) for rate in told]
