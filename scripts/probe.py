"""Asks a hub from inside its own container or pod, for the smoke tests: `python - COMMAND ... < scripts/probe.py`.

put FEED PREFIX FILE      puts products one after the other until FILE is there; prints SHA-256 and id of each
put-one FEED ID BYTES     puts one product of that size; prints its SHA-256
kill-node                 kills the node of the hub or sender in this container with -9
served FEED TRANSPORT N   waits until N sites are served with the feed by that transport
served-by ADDRESS FEED    waits until the site in this container has the feed from the node at that address
p99 FEED SECONDS          prints the p99 of the feed's live deliveries in the next so many seconds, in milliseconds
p99-back FEED MS SECONDS  waits so long until that p99 is as it was before, when it was MS
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from downburst.host.local_token import authorization

HUB = os.environ.get("DOWNBURST_HUB", "http://127.0.0.1:7371")
PACE_S = 0.05
"""Between two products."""
PATIENCE_S = 120.0
"""How long something may take on a machine that does other work besides."""


def main() -> int:
    """Does what the first argument says."""
    command, *arguments = sys.argv[1:]
    with httpx.Client(base_url=HUB, timeout=60, headers=authorization(HUB)) as hub:
        if command == "put":
            _put_until(hub, arguments[0], prefix=arguments[1], end=Path(arguments[2]))
        elif command == "kill-node":
            _kill_node()
        elif command == "put-one":
            print(_put(hub, arguments[0], arguments[1], random.randbytes(int(arguments[2]))))  # noqa: S311
        elif command == "served":
            return _served(hub, arguments[0], transport=arguments[1], sites=int(arguments[2]))
        elif command == "served-by":
            return _served_by(arguments[0], feed=arguments[1])
        elif command == "p99":
            print(f"{_p99_in_window_ms(hub, arguments[0], window_s=float(arguments[1])):g}")
        elif command == "p99-back":
            return _is_back(hub, arguments[0], before_ms=float(arguments[1]), patience_s=float(arguments[2]))
        else:
            sys.stderr.write(f"there is no {command!r}\n{__doc__}")
            return 2
    return 0


def _put_until(hub: httpx.Client, feed: str, *, prefix: str, end: Path) -> None:
    number = 0
    while not end.exists():
        body = random.randbytes(random.choice((500, 2_000, 90_000)))  # noqa: S311
        print(_put(hub, feed, f"{prefix}/{number}", body), f"{prefix}/{number}", flush=True)
        number += 1
        time.sleep(PACE_S)


def _kill_node() -> None:
    nodes = [one.parent for one in Path("/proc").glob("[0-9]*/cmdline") if b"downburst-node" in one.read_bytes()]
    for node in nodes:
        os.kill(int(node.name), signal.SIGKILL)
    if not nodes:
        raise SystemExit("no node runs here")


def _put(hub: httpx.Client, feed: str, product_id: str, body: bytes) -> str:
    """Puts one product until it is acknowledged, as a source does; its SHA-256."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = hub.put(f"/v1/feeds/{quote(feed, safe='')}/products/{quote(product_id, safe='')}", content=body)
            if answer.is_success:
                return hashlib.sha256(body).hexdigest()
            problem = answer.text
        except httpx.TransportError as error:
            problem = repr(error)
        if time.monotonic() > give_up:
            raise SystemExit(f"{product_id} was not acknowledged in {PATIENCE_S:.0f} s: {problem}")
        time.sleep(0.5)


def _served(hub: httpx.Client, feed: str, *, transport: str, sites: int) -> int:
    give_up = time.monotonic() + PATIENCE_S
    found: list[Any] = []
    while time.monotonic() < give_up:
        told = hub.get("/v1/overview").json()["sites"]
        found = [one["transport"] for site in told for one in site["feeds"] if one["feed"] == feed]
        if found.count(transport) >= sites:
            print(f"{found.count(transport)} sites are served with {feed} by {transport}")
            return 0
        time.sleep(0.5)
    sys.stderr.write(f"{feed} is not served to {sites} sites by {transport} in {PATIENCE_S:.0f} s, but: {found}\n")
    return 1


def _served_by(address: str, *, feed: str) -> int:
    give_up = time.monotonic() + PATIENCE_S
    said = ""
    while time.monotonic() < give_up:
        argv = ["downburst-node", "site-control", "--dir", ".", "--json", "status"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode == 0 and address in _nodes_that_send(json.loads(done.stdout), feed):
            return 0
        time.sleep(0.2)
    sys.stderr.write(f"{feed} does not come from {address} in {PATIENCE_S:.0f} s: {said}\n")
    return 1


def _nodes_that_send(status: dict[str, Any], feed: str) -> list[str]:
    nodes = [node for hub in status["hubs"] for node in hub["nodes"]]
    return [node["address"] for node in nodes if node["connected"] and feed in node["feeds"]]


def _is_back(hub: httpx.Client, feed: str, *, before_ms: float, patience_s: float) -> int:
    """Windows follow each other until one is as good as before; what came late in an outage is in the first ones."""
    began = time.monotonic()
    good_ms = max(TIMES_BEFORE * before_ms, GOOD_IN_ANY_CASE_MS)
    while True:
        now_ms = _p99_in_window_ms(hub, feed, window_s=WINDOW_S)
        after_s = time.monotonic() - began
        said = f"p99 of delivery {before_ms:g} ms before, {now_ms:g} ms {after_s:.0f} s after"
        if now_ms <= good_ms:
            print(said)
            return 0
        if after_s + WINDOW_S > patience_s:
            sys.stderr.write(f"{said}, more than {good_ms:g} ms\n")
            return 1


def _p99_in_window_ms(hub: httpx.Client, feed: str, *, window_s: float) -> float:
    """Of deliveries counted in the window, from storage at the hub to storage at the site; infinite if none.

    The api tells latencies by the minute, so what was counted meanwhile is the difference of two of its histograms.
    Their steps are a tenth of a decade; the p99 is the upper end of its step.
    """
    before = _histogram(hub, feed)
    time.sleep(window_s)
    counted = _histogram(hub, feed) - before
    seen = 0
    for to_ms, count in sorted(counted.items()):
        seen += count
        if seen >= 0.99 * counted.total():
            return to_ms
    return float("inf")


def _histogram(hub: httpx.Client, feed: str) -> Counter[float]:
    """How many deliveries took up to how many milliseconds, over so long a time that none of them leaves it."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        problem = ""
        try:
            answer = hub.get("/v1/latency/histogram", params={"feed": feed, "minutes": HISTORY_MINUTES})
            if answer.is_success:
                return Counter({float(one["to_ms"]): int(one["count"]) for one in answer.json()["bins"]})
            problem = answer.text
        except httpx.TransportError as error:
            problem = repr(error)
        if time.monotonic() > give_up:
            raise SystemExit(f"no latencies in {PATIENCE_S:.0f} s: {problem}")
        time.sleep(0.5)


HISTORY_MINUTES = 24 * 60
WINDOW_S = 5.0
TIMES_BEFORE = 2.0
"""So much of what it was is as before: windows of some hundred deliveries differ by that on a machine at work."""
GOOD_IN_ANY_CASE_MS = 100.0


if __name__ == "__main__":
    sys.exit(main())
