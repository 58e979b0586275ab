"""The row of a small receive buffer beside four busy loops: datagrams that find no room, by the reader's priority."""

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness.busy_loops import loops_in_all
from bench.harness.report import Goal, Row, median
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode, node_binary
from kit.patience import wait_for


class TooBusyError(RuntimeError):
    """The machine has no time for the run."""


@dataclass(frozen=True)
class Losses:
    """The datagrams of one run."""

    arrived: int
    """Frames that reached the site's host."""
    dropped: int
    """By the kernel's count of the socket."""
    reported: int
    """By the receiver's own status, afterwards."""
    standing: str
    """The reading thread's priority, as the receiver reports it."""

    @property
    def percent(self) -> float:
        """Dropped ones, in per cent."""
        return 100 * self.dropped / max(self.arrived, 1)


def lost_beside_loops(directory: Path, *, priority: int | None, seconds: float) -> Losses:
    """A leg of 56 Mb/s to a site whose receive buffer is of 64 kB, for so long, beside four busy loops.

    The hub runs at real-time priority, so that the loops delay the reader alone.
    """
    products = max(1, round(RATE_BPS / 8 * seconds / PRODUCT_BYTES))
    with Lab(["hub", "site"]) as lab, _leg(lab, directory, priority) as (hub, site):
        before = _frames(lab)
        with loops_in_all(LOOPS):
            for number in range(products):
                hub.put(FEED, f"grid {number}", secrets.token_bytes(PRODUCT_BYTES))
            wait_for("products that left by the leg", lambda: _sent(hub) >= products, 10 * seconds + 60)
            arrived = _frames(lab) - before
        assert hub.drained()
        table, port = lab.output("site", ["cat", "/proc/net/udp"]), hub.group(LEG)[1]
        if f":{port:04X} " not in table or any(event["state"] != "joined" for event in hub.events_named("leg")):
            raise TooBusyError("the site left the group: this machine is too busy to tell the priorities apart")
        dropped = kernel_drops(table, port)
        reading = wait_for("a settled count", lambda: _settled(site, dropped), 10)
        return Losses(arrived, dropped, reading["dropped"], reading["standing"])


def rows_of_small_buffers(runs: dict[str, list[Losses]]) -> list[Row]:
    """Row 14: medians of the runs with each priority."""
    normal, urgent = (median(run.percent for run in runs[name]) for name in (NORMAL, REAL_TIME))
    case = "56 Mb/s into 64 kB, four busy loops: datagrams without room"
    return [Row("14", case, "%", urgent, NORMAL, normal, len(runs[REAL_TIME]), Goal("ratio", "<=", 0.2))]


def kernel_drops(table: str, port: int) -> int:
    """The drops of the sockets at this port, from the text of /proc/net/udp."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return sum(int(row[-1]) for row in rows if int(row[1].rpartition(":")[2], 16) == port)


def reading_of(directory: Path, feed: str) -> dict[str, Any]:
    """How the host of the site in this directory reads a feed's group, by its own status."""
    argv = [node_binary(), "site-control", "--dir", str(directory), "--json", "status"]
    told = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=20)
    found: dict[str, Any] = next(one for one in json.loads(told.stdout)["groups"] if one["feed"] == feed)
    return found


@contextmanager
def _leg(lab: Lab, directory: Path, priority: int | None) -> Iterator[tuple[HubNode, SiteNode]]:
    prefix = ["chrt", "--rr", str(HUBS_PRIORITY), *lab.command("hub", [])]
    hub = HubNode(directory / "hub", listen=f"{lab.address('hub')}:0", interface="eth0", prefix=prefix).start()
    arguments = ["--receive-buffer", str(BUFFER_BYTES), "--no-files"]
    arguments += ["--receive-priority", str(priority)] if priority else []
    site = SiteNode(directory / "site", hub.address, prefix=lab.command("site", []), arguments=arguments)
    try:
        hub.feed(FEED)
        hub.site("site", {"feed": FEED, "pattern": ".*", "not_pattern": None}, token_file=site.token_file)
        site.start()
        hub.wait_connected("site")
        hub.multicast(FEED, 2, LEG, RATE_BPS, ["site"], burst_bytes=BURST_BYTES)
        hub.wait_event(event="leg", leg=LEG, site="site", state="joined")
        yield hub, site
    finally:
        if hasattr(site, "process"):
            site.stop()
        hub.stop()


def _sent(hub: HubNode) -> int:
    counted = [leg for event in hub.events_named("traffic") for leg in event["legs"] if leg["leg"] == LEG]
    return sum(int(leg["products"]) for leg in counted)


def _frames(lab: Lab) -> int:
    return int(lab.output("site", ["cat", "/sys/class/net/eth0/statistics/rx_packets"]))


def _settled(site: SiteNode, dropped: int) -> dict[str, Any] | None:
    """The receiver's figures once they include all drops; it reads the kernel's count five times a second."""
    reading = reading_of(site.directory, FEED)
    return reading if reading["dropped"] >= dropped else None


FEED, LEG = "NGRID", 90
RATE_BPS, BUFFER_BYTES, LOOPS = 56_000_000, 65_536, 4
BURST_BYTES = 2_000
"""The least: the datagrams are spread as on a line of the leg's rate."""
PRODUCT_BYTES = 500_000
READERS_PRIORITY, HUBS_PRIORITY = 20, 30
NORMAL, REAL_TIME = "normal priority", "SCHED_RR"
