"""A hub and its sites in the namespaces of a lab, everything in memory, and a proof of all arrivals."""

import json
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from bench.harness.counters import cpu_s
from bench.harness.delivery import HUB
from bench.harness.memory import memory_bytes
from bench.harness.schedules import Planned, write
from bench.harness.stamps import Stamps, parse
from kit.namespaces import Lab
from kit.node import HubNode, Line, SiteNode
from kit.patience import wait_for
from kit.programs import built

FEED = "MEASURED"
WINDOW = 10_000
"""Unacknowledged products at the hub; an agent that sends more has lost control of its memory."""
PATIENCE_S = 300.0
RECEIPTS_S = 30.0
SITES_AT_ONCE = 32
"""Well below the hub's limit for concurrent strangers."""


@dataclass(frozen=True)
class Cpu:
    """Processor time, user and system."""

    hub_s: float
    sites_s: float

    @property
    def all_s(self) -> float:
        """Of hub and sites."""
        return self.hub_s + self.sites_s

    def since(self, earlier: "Cpu") -> "Cpu":
        """The time used between two readings."""
        return Cpu(self.hub_s - earlier.hub_s, self.sites_s - earlier.sites_s)


@dataclass(frozen=True)
class Arrivals:
    """The contents of the logs, or the receipts, after the sites were killed and the hub ended."""

    at_hub: Stamps
    at_sites: Mapping[str, Stamps]


@dataclass(frozen=True)
class Crowd:
    """Hundreds of sites in one namespace, with different feeds."""

    host: str
    interests: Mapping[str, Sequence[str]]
    """The feeds of each site."""
    retained_bytes: int


class Fleet:
    """Sites that keep products only in their logs, enrolled at a hub that a source of load can drive."""

    def __init__(  # noqa: PLR0913 (wishes of measurements for their hub and sites)
        self,
        lab: Lab,
        directory: Path,
        sites: Sequence[str],
        *,
        feeds: Mapping[str, str] | None = None,
        address: str = "",
        crowd: Crowd | None = None,
        arguments: Sequence[str] = (),
        congestion: str | None = None,
    ) -> None:
        """Describe it: feeds by name with their class, the hub's address if it is not that on the bridge.

        Sites get further `arguments`; the hub's connections the congestion control, or the machine's.
        """
        self._lab, self._directory = lab, directory
        self.feeds = feeds or {FEED: "observation"}
        address = address or lab.address(HUB)
        prefix = lab.command(HUB, [str(built("downburst-load")), "agent", "--"])
        self._hub_address = f"{address}:7370"
        options = {"tcp_congestion": congestion} if congestion else {}
        # Circuits bring addresses of their own, so only a hub that listens on all of them is reachable there.
        listen = "0.0.0.0:7370" if "--circuits" in arguments else self._hub_address
        self.hub = HubNode(directory / HUB, listen=listen, interface=address, prefix=prefix, options=options)
        self._names, self._crowd, self._arguments = tuple(sites), crowd, tuple(arguments)
        self.sites: dict[str, SiteNode] = {}
        self.empty_hub_bytes = 0

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End all remaining processes."""
        self.kill_sites()
        if self.hub_runs:
            self.hub.stop()

    @property
    def hub_runs(self) -> bool:
        """True if the hub was started and has not ended."""
        process: subprocess.Popen[str] | None = getattr(self.hub, "process", None)
        return process is not None and process.poll() is None

    @property
    def hub_pid(self) -> int:
        """The node itself, the child of the source of load."""
        return int(self.hub.events_named("load-ready")[-1]["hub_pid"])

    def hub_bytes(self) -> int:
        """The resident memory of the hub's node."""
        return resident_bytes(Path(f"/proc/{self.hub_pid}/status").read_text())

    def cpu(self) -> Cpu:
        """Read the time that hub and running sites have used so far."""
        return Cpu(cpu_s([self.hub_pid]), cpu_s(site.process.pid for site in self.sites.values()))

    def begin_with_full_log(self, *, products: int, product_bytes: int) -> tuple[float, Cpu]:
        """Fill the log while nothing runs, then start all; give when the first site was in, and the CPU before."""
        for site in self.sites.values():
            site.stop()
        self.hub.stop()
        self._fill(products, product_bytes)
        self.hub.start()
        before = Cpu(cpu_s([self.hub_pid]), 0.0)
        began_us = time.time() * 1e6
        for site in self.sites.values():
            site.start()
        self.hub.wait_connected(*self.sites)
        return min(self._connected_us(began_us)), before

    def play(self, planned: Iterable[Planned], *, window: int = WINDOW, patience_s: float = PATIENCE_S) -> Line:
        """Put products by schedule; give the player's account once the hub has acknowledged the last."""
        self.begin_play(planned, window=window)
        return self.end_play(patience_s=patience_s)

    def begin_play(self, planned: Iterable[Planned], *, window: int = WINDOW) -> None:
        """Prepare the spool files and begin."""
        schedule = write(self._directory / "schedule", planned)
        spool = self._directory / "load"
        self._played = len(self.hub.events_named("load-done"))
        self.hub.do("load-prepare", schedule=str(schedule), spool=str(spool))
        self.hub.do("load-play", window=window)

    def end_play(self, *, patience_s: float = PATIENCE_S) -> Line:
        """Wait for the player's account."""

        def done() -> Line | None:
            return next(iter(self.hub.events_named("load-done")[self._played :]), None)

        account = wait_for("end of the schedule", done, patience_s)
        if "error" in account or account["refused"]:
            raise RuntimeError(f"the hub did not take every product: {account}")
        return account

    def drained(self, *, patience_s: float = PATIENCE_S) -> None:
        """Wait until every site has everything, or fail."""
        give_up_s = time.monotonic() + patience_s
        while not self.hub.drained(seconds=min(60.0, patience_s)):
            if time.monotonic() > give_up_s:
                raise RuntimeError(f"sites still lacked products after {patience_s:.0f} s; see {self._directory}")

    def finish(self, *, restarted: Sequence[str] = (), patience_s: float = PATIENCE_S) -> Arrivals:
        """Wait for all receipts, kill the sites with -9, read their logs; fails unless each has all products once."""
        self.drained(patience_s=patience_s)
        self._receipted(restarted)
        self.kill_sites()
        self.hub.stop()
        arrivals = Arrivals(
            stamps_in(self.hub.directory / "data" / "log"),
            self._at_sites(),
        )
        check(arrivals, self._crowd.interests if self._crowd else {})
        return arrivals

    def kill_sites(self) -> None:
        """End the sites as a power cut would."""
        for site in self.sites.values():
            if hasattr(site, "process") and site.process.poll() is None:
                site.kill()

    def _start(self) -> None:
        self.hub.start()
        for feed, feed_class in self.feeds.items():
            self.hub.feed(feed, **{"class": feed_class, "retention_bytes": RETAINED_BYTES})
        self.empty_hub_bytes = self.hub_bytes()
        self._start_sites()
        for feed in self.feeds:
            self.hub.put(feed, "the first product makes every site know the feed", b"first")
        self.drained()

    def _start_sites(self) -> None:
        for start in range(0, len(self._names), SITES_AT_ONCE):
            group = self._names[start : start + SITES_AT_ONCE]
            for name in group:
                self.sites[name] = self._start_site(name)
            wait_for(f"sessions of {group}", partial(self._connected, group), PATIENCE_S)

    def _start_site(self, name: str) -> SiteNode:
        retained = self._crowd.retained_bytes if self._crowd else RETAINED_BYTES
        site = SiteNode(
            self._directory / name,
            self._hub_address,
            prefix=self._lab.command(self._host(name), []),
            arguments=("--no-files", "--retention-bytes", str(retained), *self._arguments),
        )
        self.hub.site(name, *self._subscriptions(name), token_file=site.token_file)
        return site.start()

    def _host(self, name: str) -> str:
        return self._crowd.host if self._crowd else name

    def _subscriptions(self, name: str) -> list[Line]:
        interests = self._crowd.interests[name] if self._crowd else tuple(self.feeds)
        return [{"feed": feed, "pattern": ".*", "not_pattern": None} for feed in interests]

    def _connected(self, names: Sequence[str]) -> bool:
        return set(names) <= {session["site"] for session in self.hub.do("status")["sessions"]}

    def _fill(self, products: int, product_bytes: int) -> None:
        log = self.hub.directory / "data" / "log" / FEED
        argv = [str(built("downburst-load")), "fill", "--log", str(log), "--feed", FEED]
        argv += ["--products", str(products), "--bytes", str(product_bytes)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)

    def _connected_us(self, since_us: float) -> list[float]:
        return [
            event["at_us"]
            for event in self.hub.events_named("session")
            if event["state"] == "connected" and event["at_us"] >= since_us
        ]

    def _receipted(self, restarted: Sequence[str]) -> None:
        """Wait until the batch files account for every product; a stopped site took its unsent receipts with it."""
        products = {feed["feed"]: int(feed["products"]) for feed in self.hub.do("status")["feeds"]}
        interests = self._crowd.interests if self._crowd else dict.fromkeys(self._names, tuple(self.feeds))
        expected = {name: sum(products[feed] for feed in feeds) for name, feeds in interests.items()}

        def lacking() -> dict[str, int]:
            counts = receipts(self.hub.directory / "batches")
            return {name: counts.get(name, 0) for name in self._names if counts.get(name, 0) != expected[name]}

        give_up_s = time.monotonic() + RECEIPTS_S
        while set(lacking()) - set(restarted):
            if time.monotonic() > give_up_s:
                raise RuntimeError(f"receipts of {products} were expected, but there are {lacking()}")
            time.sleep(0.05)

    def _at_sites(self) -> Mapping[str, Stamps]:
        return {name: stamps_in(site.directory / "log") for name, site in self.sites.items()}


def stamps_in(logs: Path) -> Stamps:
    """Read the logs of a node that has ended; every product is compared with its digest."""
    argv = [str(built("downburst-load")), "stamps", str(logs)]
    return parse(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)


def resident_bytes(status: str) -> int:
    """Read VmRSS of /proc/PID/status."""
    return memory_bytes(status, "VmRSS")


def receipts(batches: Path) -> dict[str, int]:
    """Count the products per site that the hub's batch files report as stored there."""
    counts: dict[str, int] = {}
    for path in batches.glob("*.json"):
        settled: list[dict[str, Any]] = json.loads(path.read_text())["settled"]
        for line in settled:
            counts[line["site"]] = counts.get(line["site"], 0) + line["stored"]
    return counts


def check(arrivals: Arrivals, interests: Mapping[str, Sequence[str]] = MappingProxyType({})) -> None:
    """Fail unless every site holds the hub's products of its feeds, each once, with bytes that match their digest."""
    for name, stamps in arrivals.at_sites.items():
        if name in interests:
            is_same = all(_same_sequences(stamps, arrivals.at_hub, feed) for feed in interests[name])
        else:
            is_same = stamps.fingerprint == arrivals.at_hub.fingerprint
        if stamps.damaged or not is_same:
            counts = f"{len(stamps.rows)} products, {stamps.damaged} damaged, of {len(arrivals.at_hub.rows)}"
            raise RuntimeError(f"{name} does not hold what the hub holds: {counts}")


def _same_sequences(site: Stamps, hub: Stamps, feed: str) -> bool:
    return feed in site.feeds and sorted(site.of(feed).sequences) == sorted(hub.of(feed).sequences)


RETAINED_BYTES = 16_000_000_000
"""Nothing is evicted during the measurement."""
