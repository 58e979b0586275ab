"""The product: a hub's node and sites' nodes, products of 1 MB on one multicast leg."""

import sys
import time
from pathlib import Path

from bench.counters import cpu_s, link_bytes, moved
from bench.delivery import HUB, Delivery, file_stands_s
from kit.namespaces import Lab
from kit.node import HubNode, Line, SiteNode, wait_for

PRODUCT_BYTES = 1_000_000


class Downburst:
    """Encrypted, with digests, through the logs of hub and sites, and copied to files."""

    name = "downburst"

    def __init__(self, lab: Lab, directory: Path, rate_bps: int) -> None:
        self._lab = lab
        self._hub = HubNode(
            directory / HUB,
            listen=f"{lab.address(HUB)}:7370",
            interface=lab.address(HUB),
            prefix=lab.command(HUB, []),
        ).start()
        self._sites: dict[str, SiteNode] = {}
        try:
            self._start_sites(directory, rate_bps)
        except BaseException:
            self.stop()
            raise

    def deliver(self, content: bytes) -> Delivery:
        """Put the content as products of 1 MB, wait until every site has them all, and measure."""
        links, spent_s = link_bytes(self._lab), cpu_s(self._pids())
        began_s = time.time()
        for start in range(0, len(content), PRODUCT_BYTES):
            self._hub.put(FEED, f"product at {start}", content[start : start + PRODUCT_BYTES])
        if not self._hub.drained(seconds=DRAIN_S):
            raise RuntimeError(f"the sites did not have everything after {DRAIN_S} s; see {self._hub.directory}")
        expected = sorted(content[start : start + PRODUCT_BYTES] for start in range(0, len(content), PRODUCT_BYTES))
        stood_s = {name: last_file_s(site, expected) for name, site in self._sites.items()}
        spent_s = cpu_s(self._pids()) - spent_s
        links = moved(link_bytes(self._lab), links)
        return Delivery(
            product_bytes=len(content),
            took_s={name: at_s - began_s for name, at_s in stood_s.items() if at_s is not None},
            cpu_s=spent_s,
            links=links,
            accounted_repair_bytes=self._accounted_repair_bytes(began_s, time.time()),
        )

    def stop(self) -> None:
        """End hub and sites."""
        for site in self._sites.values():
            site.stop()
        self._hub.stop()

    def _start_sites(self, directory: Path, rate_bps: int) -> None:
        self._hub.feed(FEED)
        names = [host for host in self._lab.hosts if host != HUB]
        for name in names:
            site = SiteNode(directory / name, self._hub.address, prefix=self._lab.command(name, []))
            self._hub.site(name, {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
            self._sites[name] = site.start()
        self._hub.wait_connected(*names)
        self._hub.multicast(FEED, 2, LEG, rate_bps=rate_bps, sites=names)
        for name in names:
            self._hub.wait_event(event="leg", site=name, state="joined")

    def _pids(self) -> list[int]:
        return [self._hub.process.pid, *(site.process.pid for site in self._sites.values())]

    def _accounted_repair_bytes(self, began_s: float, ended_s: float) -> int:
        """Repairs that the hub told of between these moments; between runs it has nothing to repair."""

        def told() -> list[Line] | None:
            events = [event for event in self._hub.events_named("traffic") if event["to_us"] > began_s * 1e6]
            return events if any(event["from_us"] >= ended_s * 1e6 for event in events) else None

        events = wait_for("account of the traffic", told)
        return sum(leg["repair_bytes"] for event in events for leg in event["legs"])


def last_file_s(site: SiteNode, expected: list[bytes]) -> float | None:
    """Wait for the files of all products; give when the last one stood, or None where they are not these products."""
    give_up_s = time.monotonic() + FILES_S
    files = received_files(site)
    while len(files) < len(expected) and time.monotonic() < give_up_s:
        time.sleep(0.02)
        files = received_files(site)
    if sorted(path.read_bytes() for path in files) != expected:
        print(
            f"{site.directory}: {len(files)} files of {len(expected)}, or wrong bytes\n{site.log()}", file=sys.stderr
        )
        return None
    return max(file_stands_s(path) for path in files)


def received_files(site: SiteNode) -> list[Path]:
    """Every file that stands at the site."""
    return [path for path in (site.directory / "received").rglob("*") if path.is_file()]


FEED = "NGRID"
LEG = 70
DRAIN_S = 120
FILES_S = 20
