"""Losses of single sites are requested and repaired by UDP; by the session where a firewall stops UDP."""

import secrets
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for

pytestmark = [pytest.mark.system, pytest.mark.root]

SITES = [f"site{number}" for number in range(4)]
LOSS_PERCENT = 5.0
PRODUCTS = 12
PRODUCT_BYTES = 500_000
RATE_BPS = 40_000_000


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "nft-numgen")
    with Lab(["hub", *SITES]) as lab:
        yield lab


@pytest.fixture
def nodes(lab: Lab, tmp_path: Path) -> Iterator[tuple[HubNode, dict[str, SiteNode]]]:
    """A hub and four sites with sessions, not yet on a leg."""
    listen = f"{lab.address('hub')}:7370"
    hub = HubNode(tmp_path / "hub", listen=listen, interface=lab.address("hub"), prefix=lab.command("hub", []))
    hub.start()
    hub.feed("NGRID")
    sites: dict[str, SiteNode] = {}
    try:
        for name in SITES:
            site = SiteNode(tmp_path / name, hub.address, prefix=lab.command(name, []))
            hub.site(name, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            sites[name] = site.start()
        hub.wait_connected(*SITES)
        yield hub, sites
    finally:
        for site in sites.values():
            site.stop()
        hub.stop()


@pytest.mark.smoke
def test_with_losses_both_ways_repairs_go_by_udp(lab: Lab, nodes: tuple[HubNode, dict[str, SiteNode]]) -> None:
    hub, sites = nodes
    begin_leg(hub)
    for name in ["hub", *SITES]:
        lab.loss(name, LOSS_PERCENT)
    deliver(hub, sites)
    assert all(lab.lost_packets(name) > 10 for name in ["hub", *SITES]), "the loss was not real"
    repairs = repair_bytes(hub)
    print(f"repairs of {PRODUCTS * PRODUCT_BYTES} bytes: {repairs}")
    assert repairs["channel"] > 0
    # A host that stalls for seconds takes its hub for unreachable; its session takes over, at most to this extent.
    assert repairs["session"] <= repairs["channel"] + repairs["group"]


def test_a_firewall_leaves_repairs_to_the_session_and_the_hub_says_so(
    lab: Lab, nodes: tuple[HubNode, dict[str, SiteNode]]
) -> None:
    hub, sites = nodes
    # All UDP to the hub stops before the first request of a site; the group loses packets as before.
    lab.loss("hub", 100.0)
    begin_leg(hub)
    for name in SITES:
        lab.loss(name, LOSS_PERCENT)
    deliver(hub, sites)
    repairs = repair_bytes(hub)
    assert repairs["channel"] == 0
    assert repairs["session"] > 0
    # A site probes for some seconds before it considers its datagrams unanswered; its next request reports it.
    for _ in range(20):
        if unreached(hub):
            break
        deliver(hub, sites)
    assert "UDP port 7370" in unreached(hub)[0]


def begin_leg(hub: HubNode) -> None:
    hub.multicast("NGRID", 2, 70, rate_bps=RATE_BPS, sites=SITES)
    for name in SITES:
        hub.wait_event(event="leg", site=name, state="joined")


def deliver(hub: HubNode, sites: dict[str, SiteNode]) -> None:
    """Puts products and waits until all sites have exactly these bytes."""
    put = {}
    for _ in range(PRODUCTS):
        content = secrets.token_bytes(PRODUCT_BYTES)
        name = f"grid {secrets.token_hex(4)}"
        answer = hub.put("NGRID", name, content)
        put[("NGRID", answer["sequence"])] = (name, sha256(content).hexdigest())
    assert hub.drained(seconds=120)
    for name, site in sites.items():
        wait_for(f"files at {name}", partial(lambda at: put.items() <= at.received().items(), site), 60.0)


def repair_bytes(hub: HubNode) -> dict[str, int]:
    """The bytes of repairs by each path, from the hub's counters."""
    known = len(hub.events_named("traffic"))
    wait_for("the last second's counters", lambda: len(hub.events_named("traffic")) >= known + 2)
    legs = [leg for event in hub.events_named("traffic") for leg in event["legs"] if leg["leg"] == 70]
    total = {name: sum(leg[f"{name}repair_bytes"] for leg in legs) for name in ("", "group_", "channel_")}
    return {
        "group": total["group_"],
        "channel": total["channel_"],
        "session": total[""] - total["group_"] - total["channel_"],
    }


def unreached(hub: HubNode) -> list[str]:
    faults = [event["sentence"] for event in hub.events_named("fault")]
    return [sentence for sentence in faults if "requests by UDP get no answer" in sentence]
