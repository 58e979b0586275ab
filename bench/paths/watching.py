"""The cost of the tracer while many connections are busy."""

import os
import time
from pathlib import Path

from bench.harness.counters import cpu_s_by_thread
from kit.node import HubNode
from kit.swarm import Swarm, enrol

FEED = "OBSERVATIONS"
TRACER = "tracer"
"""The name of the node's thread."""
PRODUCTS_PER_S = 20.0


def tracer_share(directory: Path, *, sites: int, seconds: float) -> float:
    """The share of a processor that the tracer's thread took while every connection sent products."""
    hub = HubNode(directory / "hub").start()
    try:
        hub.feed(FEED)
        names = [f"site-{number}" for number in range(sites)]
        tokens = directory / "tokens"
        enrol(hub, names, {"feed": FEED, "pattern": ".*", "not_pattern": None}, file=tokens)
        swarm = Swarm(hub.address, tokens, arguments=["--receive"]).start()
        try:
            swarm.wait_connected(sites)
            _send(hub, 1.0)
            before_s, began_s = _tracer_s(hub), time.monotonic()
            _send(hub, seconds)
            return (_tracer_s(hub) - before_s) / (time.monotonic() - began_s)
        finally:
            swarm.stop()
    finally:
        hub.stop()


def _send(hub: HubNode, seconds: float) -> None:
    ends_s, number = time.monotonic() + seconds, 0
    while time.monotonic() < ends_s:
        hub.put(FEED, f"{ends_s} {number}", os.urandom(2_000))
        number += 1
        time.sleep(1 / PRODUCTS_PER_S)


def _tracer_s(hub: HubNode) -> float:
    return cpu_s_by_thread(hub.process.pid)[TRACER]
