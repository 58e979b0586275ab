"""Multicast on real networks: IP versions, groups of one source, snooping bridges, firewalls, wrong interfaces."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab, run_to_end
from kit.node import HubNode, Line, SiteNode
from kit.patience import wait_for

pytestmark = pytest.mark.system

GROUPS = {
    "IPV4": "239.77.1.2",
    "IPV4-ONE-SOURCE": "232.77.1.2",
    "IPV6": "ff15::77:2",
    "IPV6-ONE-SOURCE": "ff3e::8000:7702",
}


@contextmanager
def hub_and_site(
    lab: Lab, directory: Path, *feeds: str, site_arguments: tuple[str, ...] = ()
) -> Iterator[tuple[HubNode, SiteNode]]:
    """A hub and a connected site, each on its host of the lab."""
    prefix = lab.command("hub", [])
    hub = HubNode(directory / "hub", listen=f"{lab.address('hub')}:0", interface="eth0", prefix=prefix).start()
    site = SiteNode(directory / "site", hub.address, prefix=lab.command("site", []), arguments=site_arguments)
    try:
        for feed in feeds:
            hub.feed(feed)
        wishes = [{"feed": feed, "pattern": ".*", "not_pattern": None} for feed in feeds]
        hub.site("site", *wishes, token_file=site.token_file)
        site.start()
        hub.wait_connected("site")
        yield hub, site
    finally:
        if hasattr(site, "process"):
            site.stop()
        hub.stop()


def deliver(hub: HubNode, site: SiteNode, feed: str, count: int) -> None:
    """Puts products and waits until the site has exactly these of the feed."""
    put = {}
    for number in range(count):
        content = secrets.token_bytes(40_000)
        answer = hub.put(feed, f"{feed} {number}", content)
        put[(feed, answer["sequence"])] = (f"{feed} {number}", sha256(content).hexdigest())
    assert hub.drained()
    wait_for(f"files of {feed}", lambda: put.items() <= site.received().items())


def wait_for_bytes(hub: HubNode, leg: int) -> None:
    """Waits until the counters report that products were sent by the leg."""

    def carried() -> bool:
        counted = [line for event in hub.events_named("traffic") for line in event["legs"] if line["leg"] == leg]
        return any(line["product_bytes"] > 0 for line in counted)

    wait_for(f"bytes on leg {leg}", carried)


def repair_share(hub: HubNode, leg: int) -> float:
    """Repairs for each byte of products that were sent by the leg."""
    counted = [line for event in hub.events_named("traffic") for line in event["legs"] if line["leg"] == leg]
    products = sum(int(line["product_bytes"]) for line in counted)
    return sum(int(line["repair_bytes"]) for line in counted) / max(products, 1)


def until_too_slow(hub: HubNode, feed: str) -> int:
    """Keeps the only leg busy, seconds ahead of it, until a site is taken off it; returns the number of products."""

    def too_slow() -> bool:
        return any(event["state"] == "too-slow" for event in hub.events_named("leg"))

    def has_left(products: int) -> bool:
        told = [leg for event in hub.events_named("traffic") for leg in event["legs"]]
        return too_slow() or sum(int(leg["products"]) for leg in told) >= products

    for number in range(400):
        wait_for("product that left by the leg", partial(has_left, number - 30))
        if too_slow():
            return number
        hub.put(feed, f"grid {number}", secrets.token_bytes(200_000))
    raise AssertionError("no site was taken off the leg in 80 MB")


def joining_ms(hub: HubNode, known: int) -> float:
    """The time from a site's session to its join of the leg, by the events behind the first `known`."""

    def both() -> tuple[int, int] | None:
        later = hub.events[known:]
        joined = [int(event["at_us"]) for event in later if event["event"] == "leg" and event["state"] == "joined"]
        begun = [int(event["at_us"]) for event in later if event.get("state") == "connected"]
        return (begun[-1], joined[-1]) if begun and joined else None

    begun, joined = wait_for("a session and a leg", both)
    return (joined - begun) / 1_000


def test_every_kind_of_group_is_carried_by_a_snooping_bridge(tmp_path: Path) -> None:
    needs("netns")
    with Lab(["hub", "site"], snooping=True) as lab, hub_and_site(lab, tmp_path, *GROUPS) as (hub, site):
        for leg, (feed, group) in enumerate(GROUPS.items(), start=70):
            hub.multicast(feed, 2, leg, 100_000_000, ["site"], group=group)
        for leg, feed in enumerate(GROUPS, start=70):
            joined = hub.wait_event(event="leg", leg=leg, site="site", state="joined")
            assert "recvmmsg" in joined["reception"]["path"]
            deliver(hub, site, feed, 10)
            wait_for_bytes(hub, leg)
        joins = lab.output("site", ["cat", "/proc/net/mcfilter", "/proc/net/mcfilter6"])
        # The kernel writes addresses as numbers: the group, then the only admitted source.
        assert "0xe84d0102 0x0a4d0001" in joins
        assert "ff3e0000000000000000000080007702 fd770000000000000000000000000001" in joins
        assert site.stop() == 0


def test_a_firewall_is_named_and_the_group_is_used_once_it_lets_it_in(tmp_path: Path) -> None:
    needs("netns")
    with Lab(["hub", "site"]) as lab, hub_and_site(lab, tmp_path, "NGRID") as (hub, site):
        lab.loss("site", 100)
        hub.multicast("NGRID", 2, 71, 100_000_000, ["site"])
        unheard = hub.wait_event(event="leg", leg=71, state="never-heard")
        assert "firewall" in unheard["reason"]
        assert str(unheard["reason"]).startswith("nothing was received from the leg's group: multicast reaches eth0")
        deliver(hub, site, "NGRID", 5)
        lab.loss("site", 0)
        hub.wait_event(event="leg", leg=71, state="joined", seconds=40)
        deliver(hub, site, "NGRID", 5)
        assert site.stop() == 0


def test_an_interface_that_no_multicast_reaches_is_named(tmp_path: Path) -> None:
    needs("netns")
    with Lab(["hub", "site"]) as lab:
        lab.output("site", ["ip", "link", "add", "spare", "type", "veth", "peer", "name", "end"])
        lab.output("site", ["ip", "address", "add", "10.88.0.1/24", "dev", "spare"])
        lab.output("site", ["ip", "link", "set", "spare", "up"])
        lab.output("site", ["ip", "link", "set", "end", "up"])
        with hub_and_site(lab, tmp_path, "NGRID") as (hub, site):
            hub.interfaces["site"] = "spare"
            hub.tell_sites()
            hub.multicast("NGRID", 2, 72, 100_000_000, ["site"])
            unheard = hub.wait_event(event="leg", leg=72, state="never-heard")
            assert "no multicast reaches spare" in unheard["reason"]
            hub.interfaces["site"] = "nowhere0"
            hub.tell_sites()
            hub.multicast("NGRID", 3, 73, 100_000_000, ["site"])
            missing = hub.wait_event(event="leg", leg=73, state="never-heard")
            assert '"nowhere0"' in missing["reason"]
            assert "eth0 (10.77.0.2)" in missing["reason"]
            deliver(hub, site, "NGRID", 5)
            assert site.stop() == 0


def test_a_small_buffer_and_missing_offload_are_said(tmp_path: Path) -> None:
    needs("netns")
    with (
        Lab(["hub", "site"]) as lab,
        hub_and_site(lab, tmp_path, "NGRID", site_arguments=("--no-udp-offload",)) as (
            hub,
            site,
        ),
    ):
        hub.multicast("NGRID", 2, 74, 1_000_000_000, ["site"], offload=False, burst_bytes=64_000)
        reception: Line = hub.wait_event(event="leg", leg=74, state="joined")["reception"]
        assert reception["path"] == "batches (recvmmsg) of datagrams"
        assert reception["advice"].endswith("start the receiver with --receive-buffer 25000000")
        assert str(reception["buffer_bytes"]) in reception["advice"]
        assert "one datagram a call" in (tmp_path / "hub" / "hub.log").read_text()
        deliver(hub, site, "NGRID", 5)
        assert site.stop() == 0


@pytest.mark.parametrize(("narrow", "mtu_bytes"), [("hub", 1_400), ("site", 1_280)])
def test_datagrams_are_as_long_as_the_narrowest_link_carries(tmp_path: Path, narrow: str, mtu_bytes: int) -> None:
    needs("netns")
    with Lab(["hub", "site"]) as lab:
        run_to_end(lab.command(narrow, ["ip", "link", "set", "eth0", "mtu", str(mtu_bytes)]))
        with hub_and_site(lab, tmp_path, "NGRID") as (hub, site):
            hub.multicast("NGRID", 2, 76, 100_000_000, ["site"])
            hub.wait_event(event="leg", leg=76, state="joined")
            sentence = f"carry leg=76 bytes={mtu_bytes - 48}"
            if narrow == "site":
                wait_for("the site's MTU at the leg", lambda: sentence in (tmp_path / "hub" / "hub.log").read_text())
            deliver(hub, site, "NGRID", 10)
            wait_for_bytes(hub, 76)
            assert repair_share(hub, 76) < 0.1, "datagrams that are too long come as repairs"
            assert site.stop() == 0


def test_a_site_joins_a_running_leg_at_once(tmp_path: Path) -> None:
    needs("netns")
    with Lab(["hub", "site"]) as lab, hub_and_site(lab, tmp_path, "NGRID") as (hub, site):
        hub.multicast("NGRID", 2, 75, 100_000_000, ["site"])
        hub.wait_event(event="leg", leg=75, state="joined")
        deliver(hub, site, "NGRID", 3)
        delays_ms = []
        for _ in range(3):
            known = len(hub.events)
            site.kill()
            site.start()
            delays_ms.append(joining_ms(hub, known))
            deliver(hub, site, "NGRID", 3)
        print(f"joined after {[round(delay) for delay in delays_ms]} ms")
        assert min(delays_ms) < 100, "an idle leg's next head would come up to 250 ms later"
        assert site.stop() == 0


def test_a_site_behind_half_the_rate_is_taken_off_and_the_others_stay(tmp_path: Path) -> None:
    needs("netns", "htb")
    names = ["fast", "other", "slow"]
    with Lab(["hub", *names]) as lab:
        prefix = lab.command("hub", [])
        hub = HubNode(tmp_path / "hub", listen=f"{lab.address('hub')}:0", interface="eth0", prefix=prefix).start()
        hub.feed("NGRID")
        sites = {name: SiteNode(tmp_path / name, hub.address, prefix=lab.command(name, [])) for name in names}
        for name, site in sites.items():
            hub.site(name, {"feed": "NGRID", "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            site.start()
        hub.wait_connected(*names)
        lab.rate("slow", down_bps=10_000_000)
        hub.multicast("NGRID", 2, 76, 20_000_000, names)
        for name in names:
            hub.wait_event(event="leg", leg=76, site=name, state="joined")
        put = until_too_slow(hub, "NGRID")
        off = hub.wait_event(event="leg", state="too-slow")
        assert off["site"] == "slow"
        # The site or the hub reports it, whichever notices first.
        assert "repair does not keep up" in off["reason"] or "served alone" in off["reason"]
        assert hub.drained(seconds=120)
        assert {event["site"] for event in hub.events_named("leg") if event["state"] != "joined"} == {"slow"}
        for name, site in sites.items():
            assert len(site.wait_received(put)) == put, name
            assert site.stop() == 0
        hub.stop()
