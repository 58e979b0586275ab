"""Sites that return from the same outage get what they all lack by one stream beside the live one.

The outage is a stretch of products that all of them lack, put as fast as the group takes them: the hub decides by
bytes and numbers, and the length of the outage is in neither. Ten minutes of a feed of 270 kb/s are these 20 MB.
"""

import statistics
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

import pytest

from downburst.foundation.file_names import decode
from kit.busy import YIELDS, needs_quiet_machine
from kit.capabilities import needs, skip
from kit.namespaces import Lab
from kit.node import HubNode, Line, Play, SiteNode, Subscribe
from kit.patience import wait_for

FEED, LIVE = "NGRID", 70
FIRST_CATCH_UP = 1 << 30
AWAY, HERE = ["away0", "away1", "away2", "away3"], ["here0", "here1"]
RATE_BPS = 40_000_000
# Their time on the leg, 30 ms, is long beside the milliseconds for which two cores let a process of the lab wait.
LIVE_BYTES, LIVE_EVERY_S = 150_000, 0.1
STRETCH_PRODUCTS, STRETCH_BYTES = 200, 100_000
BASELINE_S, RUNS = 5, 3
MOST_COPIES, MOST_LATER = 1.6, 1.2


def catch_up(hub: HubNode, **changes: Any) -> Line:
    group, port = hub.group(LIVE + 100)
    fields = {"leg": FIRST_CATCH_UP + LIVE, "group": group, "port": port}
    return {**fields, "least_bytes": 2_000_000, "wait_ms": 2_000, "streams": 2, **changes}


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "htb")
    with Lab(["hub", *AWAY, *HERE], snooping=True) as lab:
        for host in [*AWAY, *HERE]:
            lab.rate(host, down_bps=2 * RATE_BPS)
        yield lab


@pytest.mark.system
@pytest.mark.root
@pytest.mark.alone
@pytest.mark.long(70)
@pytest.mark.parametrize("judged", ["bytes", pytest.param("latency", marks=pytest.mark.nightly)])
def test_four_sites_catch_up_by_one_copy_and_live_products_stay_first(lab: Lab, tmp_path: Path, judged: str) -> None:
    hub, sites = start(lab, tmp_path)
    copies, before_ms, during_ms, lag_s = [], [], [], 0.0
    try:
        for run in range(RUNS):
            needs_quiet_machine(max_load_per_core=4.0, max_lag_ms=50.0)
            outage = Outage(lab, hub, sites, run)
            copies.append(outage.play())
            before_ms.append(outage.p99_ms(outage.before))
            during_ms.append(outage.p99_ms(outage.during))
            print(f"run {run}: live products at others {before_ms[-1]} ms before, {during_ms[-1]} ms during")
            lag_s = max(lag_s, outage.lag_s)
    finally:
        for site in sites.values():
            site.stop()
        hub.stop()
    # Each return beside the seconds before it: other work on the machine changes from one to the next.
    later = statistics.median(during / before for before, during in zip(before_ms, during_ms, strict=True))
    print(f"egress in copies of what they lacked: {[round(one, 2) for one in copies]}; live products' p99 at others")
    print(f"before {before_ms} ms, during {during_ms} ms: {later:.2f} of it")
    assert statistics.median(copies) <= MOST_COPIES, copies
    if judged == "bytes":
        return
    if lag_s > MOST_LAG_S:
        skip(f"the source was {lag_s * 1000:.0f} ms late: the machine is too busy to judge latencies")
    if max(before_ms) > MOST_LATER * min(before_ms):
        skip(f"the p99 before the returns was {before_ms} ms: other work changes it by more than the goal allows")
    assert later <= MOST_LATER, f"p99 before {before_ms} ms, during {during_ms} ms"


@pytest.mark.system
@pytest.mark.smoke
def test_sites_have_everything_once_although_one_dies_in_the_stream(node: HubNode, subscribe: Subscribe) -> None:
    names = ["one", "two", "three"]
    node.feed(FEED)
    sites = {name: subscribe(name, FEED) for name in names}
    node.wait_connected(*names)
    for site in sites.values():
        site.wait_begun(FEED)
    node.multicast(FEED, 2, LIVE, RATE_BPS, names, catch_up=catch_up(node, least_bytes=1_000_000))
    for name in names:
        node.wait_event(event="leg", site=name, state="joined")
    for site in sites.values():
        site.kill()
    wait_for("the end of their sessions", lambda: not connected(node))
    play = Play(node, FEED, seed=11)
    for _ in range(MISSED_PRODUCTS):
        play.put()
    for site in sites.values():
        site.start()
    began = node.wait_event(event="catch-up", state="began")
    assert sorted(began["sites"]) == sorted(names), began
    assert "by one stream" in began["sentence"], began
    wait_for("something at the site that dies", lambda: len(sites["two"].received()) > 0)
    sites["two"].kill()
    ended = node.wait_event(event="catch-up", state="ended")
    assert ended["saved_bytes"] > 0, ended
    sites["two"].start()
    for site in sites.values():
        assert site.wait_received(len(play.acknowledged)) == play.acknowledged
        assert site.stop() == 0


class Outage:
    """One outage of four sites, with live products before and during their return."""

    def __init__(self, lab: Lab, hub: HubNode, sites: dict[str, SiteNode], run: int) -> None:
        self.lab, self.hub, self.sites, self.run = lab, hub, sites, run
        self.before: dict[str, float] = {}
        self.during: dict[str, float] = {}
        self.lag_s = 0.0

    def play(self) -> float:
        """Plays it; returns the hub's egress beside the live stream, in copies of what each site lacked."""
        random = Random(self.run)
        with Source(self.hub, f"before{self.run}", self.before) as source:
            time.sleep(BASELINE_S)
        self.lag_s = source.lag_s
        for name in AWAY:
            self.sites[name].kill()
        wait_for("the end of their sessions", lambda: set(AWAY).isdisjoint(connected(self.hub)))
        stretch = [random.randbytes(STRETCH_BYTES) for _ in range(STRETCH_PRODUCTS)]
        for number, content in enumerate(stretch):
            self.hub.put(FEED, f"stretch{self.run} {number}", content)
        for name in HERE:
            self.wait_for_stretch(name)
        place, sent = len(self.hub.events), egress(self.lab)
        with Source(self.hub, f"during{self.run}", self.during) as source:
            for name in AWAY:
                self.sites[name].start()
            # A look at all files would take a core from what is measured. The counters of the last second follow.
            self.hub.wait_event_after(place, seconds=90, event="catch-up", state="ended")
            time.sleep(1.2)
        self.lag_s = max(self.lag_s, source.lag_s)
        for name in AWAY:
            self.wait_for_stretch(name)
        sent = egress(self.lab) - sent
        events = self.hub.events[place:]
        ended = next(one for one in events if one["event"] == "catch-up" and one["state"] == "ended")
        assert sorted(ended["sites"]) == AWAY, ended
        # Sites that are slow to start also lack live products of that time.
        later_products = max(0, ended["to"] - ended["from"] + 1 - STRETCH_PRODUCTS)
        lacked = STRETCH_PRODUCTS * STRETCH_BYTES + later_products * LIVE_BYTES
        legs = [leg for event in events if event["event"] == "traffic" for leg in event["legs"]]
        control = sum(event["control_bytes"] for event in events if event["event"] == "traffic")
        beside = control + sum(leg["egress_bytes"] if leg["leg"] != LIVE else leg["repair_bytes"] for leg in legs)
        live = len(self.during) * LIVE_BYTES
        print(f"run {self.run}: {beside / 1e6:.1f} MB beside {live / 1e6:.1f} MB of live products;")
        print(f"the interface sent {sent / 1e6:.1f} MB; {ended['sentence']}")
        # The interface has the last word: headers of frames and of TCP are in its count.
        return float(max(beside, sent - 1.1 * live) / lacked)

    def wait_for_stretch(self, name: str) -> None:
        """Waits until a site has every product of the stretch."""
        wait_for(f"the stretch at {name}", lambda: self.stretch_at(name) == STRETCH_PRODUCTS, 90)

    def stretch_at(self, name: str) -> int:
        return sum(one.startswith(f"stretch{self.run} ") for one in arrivals(self.sites[name]))

    def p99_ms(self, put: dict[str, float]) -> float:
        """The time from acknowledgement to file, of the slower one of the sites that were here all the time."""
        slowest = []
        for name in HERE:
            site = self.sites[name]
            wait_for(f"live products at {name}", partial(has, site, set(put)))
            at = arrivals(site)
            took = sorted((at[product] - began) * 1000 for product, began in put.items())
            slowest.append(took[max(0, len(took) * 99 // 100 - 1)])
        return round(max(slowest), 1)


class Source:
    """Puts live products at a steady rate in a block, and measures how late they are."""

    def __init__(self, hub: HubNode, name: str, put: dict[str, float]) -> None:
        self.hub, self.name, self.put, self.lag_s = hub, name, put, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        random, began_s = Random(self.name), time.monotonic()
        while not self._stop.is_set():
            due_s = began_s + len(self.put) * LIVE_EVERY_S
            time.sleep(max(0.0, due_s - time.monotonic()))
            self.lag_s = max(self.lag_s, time.monotonic() - due_s)
            product = f"{self.name} {len(self.put)}"
            content, at = random.randbytes(LIVE_BYTES), time.time()
            self.hub.put(FEED, product, content)
            self.put[product] = at


def start(lab: Lab, directory: Path) -> tuple[HubNode, dict[str, SiteNode]]:
    listen, prefix = f"{lab.address('hub')}:7370", lab.command("hub", [])
    hub = HubNode(directory / "hub", listen=listen, interface=lab.address("hub"), prefix=prefix).start()
    hub.feed(FEED)
    sites = {}
    for name in [*AWAY, *HERE]:
        prefix = [*(YIELDS if name in AWAY else []), *lab.command(name, [])]
        site = SiteNode(directory / name, hub.address, prefix=prefix)
        hub.site(name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        sites[name] = site.start()
    hub.wait_connected(*sites)
    for site in sites.values():
        site.wait_begun(FEED)
    hub.multicast(FEED, 2, LIVE, RATE_BPS, list(sites), catch_up=catch_up(hub))
    for name in sites:
        hub.wait_event(event="leg", site=name, state="joined")
    return hub, sites


def connected(hub: HubNode) -> set[str]:
    return {session["site"] for session in hub.do("status")["sessions"]}


def arrivals(site: SiteNode) -> dict[str, float]:
    """The time at which the file of each product was complete at a site."""
    root = site.directory / "received"
    files = ((decode(str(path.relative_to(root))), path) for path in root.rglob("*") if path.is_file())
    return {name.product_id: path.stat().st_mtime for name, path in files}


def has(site: SiteNode, products: set[str]) -> bool:
    return products <= arrivals(site).keys()


def egress(lab: Lab) -> int:
    """The bytes that the hub's interface has sent."""
    return int(lab.output("hub", ["cat", "/sys/class/net/eth0/statistics/tx_bytes"]))


# A sleeper that wakes later than this is on a machine whose p99 says nothing of the hub.
MOST_LAG_S = 0.02
MISSED_PRODUCTS = 300
