"""A hub with hundreds of sites that share one process, and the proof of all arrivals by their receipts."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence

import numpy as np

from bench.harness.counters import cpu_s
from bench.harness.stamps import Stamps
from bench.product.fleet import PATIENCE_S, Cpu, Fleet
from kit.node import HubNode, Line, Prefix
from kit.programs import built
from kit.swarm import Swarm, enrol_each


class SwarmFleet(Fleet):
    """Sites of a swarm: TLS, sessions, clocks, digests and receipts as of a node, but no logs of their own.

    Their holdings are therefore the receipts that the hub has, and the swarm's own count has to agree.
    """

    _swarm: Swarm | None = None
    _summary: Line | None = None

    def cpu(self) -> Cpu:
        """Read the time that the hub and the process of all sites have used so far."""
        return Cpu(cpu_s([self.hub_pid]), cpu_s([self._swarm.process.pid]) if self._swarm else 0.0)

    def kill_sites(self) -> None:
        """End the process of the sites; nothing of it has to outlast that."""
        if self._swarm and self._summary is None:
            self._summary = self._swarm.stop()

    def _start_sites(self) -> None:
        wanted = {name: self._subscriptions(name) for name in self._names}
        self._swarm = connect(self.hub, wanted, prefix=self._lab.command(self._host(self._names[0]), []))

    def _at_sites(self) -> Mapping[str, Stamps]:
        argv = [str(built("downburst-load")), "receipts", str(self.hub.directory / "data" / "receipts")]
        held = parse_receipts(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)
        check_tally(self._summary or {}, sum(len(stamps.rows) for stamps in held.values()))
        nothing = Stamps((), "", 0, np.empty((0, 6), dtype=np.int64))
        return {name: held.get(name, nothing) for name in self._names}


def connect(hub: HubNode, subscriptions: Mapping[str, Sequence[Line]], *, prefix: Prefix) -> Swarm:
    """Connect sites that share a process, with a thread per core, and wait until each has a session."""
    tokens = hub.directory / "swarm-tokens"
    enrol_each(hub, subscriptions, file=tokens)
    arguments = ["--receive", "--threads", str(os.cpu_count() or 1)]
    program = str(built("downburst-swarm"))
    swarm = Swarm(hub.address, tokens, arguments=arguments, prefix=prefix, binary=program).start()
    try:
        swarm.wait_connected(len(subscriptions), PATIENCE_S)
    except BaseException:
        swarm.stop()
        raise
    return swarm


def parse_receipts(printed: bytes) -> dict[str, Stamps]:
    """Read the output of `downburst-load receipts` by site; fails if a receipt says anything other than stored."""
    head, _, body = printed.partition(b"\n")
    summary = json.loads(head)
    if summary["not_stored"]:
        raise RuntimeError(
            f"{summary['not_stored']} receipts say that a site had a product before, or does not store it"
        )
    rows = np.frombuffer(body, dtype="<i8").reshape(summary["rows"], 7).astype(np.int64)
    feeds = tuple(summary["feeds"])
    return {name: Stamps(feeds, "", 0, rows[rows[:, 0] == place, 1:]) for place, name in enumerate(summary["sites"])}


def check_tally(summary: Line, receipts: int) -> None:
    """Fail unless the sites counted as many products as the hub has receipts, and none was damaged."""
    counted, damaged = summary.get("products"), summary.get("bad")
    if counted != receipts or damaged != 0:
        raise RuntimeError(
            f"the hub has {receipts} receipts; the sites counted {counted} products, {damaged} damaged"
        )
