"""The product: a hub's node and sites' nodes, products of 1 MB on one multicast leg, or by unicast."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.harness.counters import cpu_s, link_bytes, moved, overruns
from bench.harness.delivery import HUB, Delivery, digest, file_stands_s
from bench.harness.schedules import Planned, write
from bench.product.fleet import FEED as MEASURED
from bench.product.fleet import WINDOW, Fleet
from kit.namespaces import Lab
from kit.node import HubNode, Line, SiteNode
from kit.patience import wait_for
from kit.programs import built

PRODUCT_BYTES = 1_000_000


class Downburst:
    """Encrypted, with digests, through the logs of hub and sites, and copied to files."""

    def __init__(self, lab: Lab, directory: Path, rate_bps: int | None) -> None:
        """Start all of it; without a rate the sites stay on unicast."""
        self._lab, self._directory = lab, directory
        address = lab.address(HUB)
        prefix = lab.command(HUB, [str(built("downburst-load")), "agent", "--"])
        self._hub = HubNode(directory / HUB, listen=f"{address}:7370", interface=address, prefix=prefix).start()
        self._sites: dict[str, SiteNode] = {}
        try:
            self._start_sites(directory, rate_bps)
        except BaseException:
            self.stop()
            raise

    def deliver(self, product_bytes: int) -> Delivery:
        """Put products of 1 MB at the hub's full speed, wait until every site has them all, and measure."""
        expected = self._prepare(product_bytes)
        links, spent_s, dropped = link_bytes(self._lab), cpu_s(self._pids()), self._overruns()
        began_s = self._play()
        if not self._hub.drained(seconds=DRAIN_S):
            raise RuntimeError(f"the sites did not have everything after {DRAIN_S} s; see {self._hub.directory}")
        stood_s = {name: last_file_s(site, expected) for name, site in self._sites.items()}
        spent_s = cpu_s(self._pids()) - spent_s
        links = moved(link_bytes(self._lab), links)
        return Delivery(
            product_bytes=product_bytes,
            took_s={name: at_s - began_s for name, at_s in stood_s.items() if at_s is not None},
            cpu_s=spent_s,
            links=links,
            accounted_repair_bytes=self._accounted_repair_bytes(began_s, time.time()),
            overruns=self._overruns() - dropped,
        )

    def stop(self) -> None:
        """End hub and sites."""
        for site in self._sites.values():
            site.stop()
        self._hub.stop()

    @property
    def site_pids(self) -> dict[str, int]:
        """The process of each site."""
        return {name: site.process.pid for name, site in self._sites.items()}

    def _start_sites(self, directory: Path, rate_bps: int | None) -> None:
        self._hub.feed(FEED)
        names = [host for host in self._lab.hosts if host != HUB]
        for name in names:
            site = SiteNode(directory / name, self._hub.address, prefix=self._lab.command(name, []))
            self._hub.site(name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            self._sites[name] = site.start()
        self._hub.wait_connected(*names)
        if rate_bps is None:
            return
        self._hub.multicast(FEED, 2, LEG, rate_bps=rate_bps, sites=names)
        for name in names:
            self._hub.wait_event(event="leg", site=name, state="joined")

    def _prepare(self, product_bytes: int) -> "Counter[bytes]":
        """Prepare the products; give the number of each digest expected."""
        sizes = [min(PRODUCT_BYTES, product_bytes - start) for start in range(0, product_bytes, PRODUCT_BYTES)]
        planned = (Planned(0, FEED, size, f"product {number}") for number, size in enumerate(sizes))
        spool = self._directory / "load"
        schedule = write(self._directory / "schedule", planned)
        self._hub.do("load-prepare", schedule=str(schedule), spool=str(spool))
        return Counter(digest(path) for path in spool.iterdir())

    def _play(self) -> float:
        """Play them; give the due time of the first."""
        self._hub.do("load-play", window=WINDOW)
        account = self._hub.wait_event(DRAIN_S, event="load-done")
        if "error" in account or account["refused"]:
            raise RuntimeError(f"the hub did not take every product: {account}")
        return float(account["began_us"]) / 1e6

    def _pids(self) -> list[int]:
        """The nodes; the source of load is the hub's parent process and does not count."""
        hub = int(self._hub.events_named("load-ready")[-1]["hub_pid"])
        return [hub, *(site.process.pid for site in self._sites.values())]

    def _overruns(self) -> int:
        return sum(overruns(site.process.pid) for site in self._sites.values())

    def _accounted_repair_bytes(self, began_s: float, ended_s: float) -> int:
        """Repairs that the hub reported between these moments; between runs it has nothing to repair."""

        def told() -> list[Line] | None:
            events = [event for event in self._hub.events_named("traffic") if event["to_us"] > began_s * 1e6]
            return events if any(event["from_us"] >= ended_s * 1e6 for event in events) else None

        events = wait_for("account of the traffic", told)
        return sum(leg["repair_bytes"] for event in events for leg in event["legs"])


def last_file_s(site: SiteNode, expected: "Counter[bytes]") -> float | None:
    """Wait for the files of all products; give the time of the last one, or None if the files differ from these."""
    give_up_s = time.monotonic() + FILES_S
    files = received_files(site)
    while len(files) < expected.total() and time.monotonic() < give_up_s:
        time.sleep(0.02)
        files = received_files(site)
    if Counter(map(digest, files)) != expected:
        lacks = f"{len(files)} files of {expected.total()}, or wrong bytes"
        print(f"{site.directory}: {lacks}\n{site.log()}", file=sys.stderr)
        return None
    return max(file_stands_s(path) for path in files)


def received_files(site: SiteNode) -> list[Path]:
    """All files at the site."""
    return [path for path in (site.directory / "received").rglob("*") if path.is_file()]


def on_leg(fleet: Fleet, sites: Sequence[str], rate_bps: int, *, feed: str = MEASURED) -> None:
    """Move all sites to one multicast leg and wait until all have joined."""
    fleet.hub.multicast(feed, 2, LEG, rate_bps=rate_bps, sites=sites)
    for name in sites:
        fleet.hub.wait_event(event="leg", site=name, state="joined")
    time.sleep(SETTLE_S)


FEED = "NGRID"
LEG = 70
DRAIN_S = 110
FILES_S = 20
SETTLE_S = 0.5
"""The nodes have settled after a change of plan."""
