"""Rows of receivers and their hosts: peers, processor time, real-time priority, datagrams 12 us apart."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench import spacing
from bench.harness.busy_loops import busy_loops
from bench.harness.delivery import HUB, Delivery
from bench.harness.fan_out import FanOut, FanOutContender, Stream
from bench.harness.report import Goal, Row, median
from bench.harness.turns import Entry, Turns
from bench.peers.datagrams import lost_percent
from bench.peers.peer_to_peer import PeerToPeer
from bench.peers.sendfile import Sendfile
from bench.product.multicast_leg import Downburst
from bench.seeds.formulas import transfers_of_peers
from bench.seeds.measures.fan_out import last_site_s
from bench.seeds.measures.group import NETWORK, Group, Wanted
from bench.unicast.catch_up import CatchUp
from kit.namespaces import Lab

M = 1_000_000


def peers(directory: Path, wanted: Wanted) -> list[Row]:
    """A fresh product to seven sites on links of 50 Mb/s, by peers and by multicast, in turns."""
    contenders = {
        MULTICAST: Entry(partial(Downburst, rate_bps=48 * M), wanted.runs),
        PEERS: Entry(PeerToPeer, wanted.runs),
    }
    with Lab(_hosts(SITES)) as lab:
        for host in lab.hosts:
            lab.rate(host, up_bps=50 * M, down_bps=50 * M)
        runs = Turns(directory, wanted.notes).take("a fresh product", lab, contenders, wanted.of(6, 24) * M)
    crossed = {name: median(map(_sent_by_all, found)) for name, found in runs.items()}
    last_s = {name: median(map(last_site_s, found)) for name, found in runs.items()}
    case, ratio = f"fresh product to {SITES} sites", crossed[PEERS] / crossed[MULTICAST]
    model, more = transfers_of_peers(SITES), Goal("ratio", ">=", 1.0)
    return [
        Row(
            "D22", f"{case}: bytes of all hosts, peers", "copies", crossed[PEERS], "model", model, wanted.runs, _NEAR
        ),
        Row("W18", f"{case}: bytes of peers over multicast", "times", ratio, "one", 1.0, wanted.runs, more),
        Row(
            "W18",
            f"{case}: last site by peers",
            "s",
            last_s[PEERS],
            "multicast",
            last_s[MULTICAST],
            wanted.runs,
            more,
        ),
    ]


def processor_time(directory: Path, wanted: Wanted) -> list[Row]:
    """Products of 5 MB to two sites without a limit of the links, and the same bytes by sendfile."""
    stream, found = Stream(wanted.of(40, 120), 5 * M), {}
    with Lab(_hosts(2), segments=False) as lab:
        turns = Turns(directory, wanted.notes)
        contenders: tuple[FanOutContender, ...] = (CatchUp(), Sendfile())
        for contender in contenders:
            run = partial(contender.fan_out, lab, stream=stream)
            found[contender.name] = median(
                _s_per_gb(turns.second_try(f"5 MB: {contender.name}", run)) for _ in range(wanted.runs)
            )
    ours, bare = found[CatchUp.name], found[Sendfile.name]
    case, less = "5 MB to 2 sites: both ends, for a gigabyte at a site", Goal("ratio", "<=", 1)
    return [
        Row("B3", f"{case}, encrypted", "s/GB", ours, "GridFTP, one end", 1.48, wanted.runs, Goal("ratio", "<=", 2)),
        Row("B4", "the same over that by sendfile", "times", ours / bare, "GridFTP", 1.48 / 0.29, wanted.runs, less),
    ]


def real_time(_directory: Path, wanted: Wanted) -> list[Row]:
    """1,400 bytes each 0.2 ms into a buffer of 64 kB, beside two busy loops for each core, in turns."""
    lost: dict[int, list[float]] = {0: [], PRIORITY: []}
    with Lab(_hosts(1)) as lab, busy_loops(2):
        for _ in range(wanted.runs):
            for priority, found in lost.items():
                found.append(lost_percent(lab, "site0", priority=priority, seconds=wanted.of(4, 8)))
    ordinary, urgent = (median(found) for found in lost.values())
    case = "1,400 B each 0.2 ms, buffer of 64 kB, two busy loops for each core: lost"
    if not ordinary:
        wanted.notes.append("D21: at normal priority nothing was lost, so SCHED_RR had nothing to save.")
    return [Row("D21", case, "%", urgent, "normal priority", ordinary, wanted.runs, Goal("ratio", "<=", 0.2))]


def twelve_microseconds(_directory: Path, wanted: Wanted) -> list[Row]:
    """The receiver of `make bench-spacing`."""
    debug = os.environ.get("DOWNBURST_PROFILE") == "debug"
    found = {row.id: row for row in spacing.rows(spacing.measured(wanted.of(2, 5), debug=debug))}
    return [replace(found[of], id=name) for name, of in (("U1", "2a"), ("U2", "2b"), ("U3", "1c"))]


def _sent_by_all(run: Delivery) -> float:
    """Bytes that all hosts sent over those of the product."""
    return sum(count.sent for count in run.links.values()) / run.product_bytes


def _s_per_gb(run: FanOut) -> float:
    return run.cpu_us_per_delivery / 1e6 / (run.product_bytes / 1e9)


def _hosts(sites: int) -> tuple[str, ...]:
    return (HUB, *(f"site{number}" for number in range(sites)))


SITES, PRIORITY = 7, 20
MULTICAST, PEERS = "multicast", "peers"
_NEAR = Goal("ratio", "1 +-", 0.15)
GROUPS = {
    "peers": Group(("D22", "W18"), peers, NETWORK),
    "processor": Group(("B3", "B4"), processor_time, NETWORK),
    "real-time": Group(("D21",), real_time, NETWORK),
    "spacing": Group(("U1", "U2", "U3"), twelve_microseconds),
}
