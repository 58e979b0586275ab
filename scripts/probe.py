"""Asks a hub from inside its own container or pod, for the smoke tests: `python - COMMAND ... < scripts/probe.py`.

put FEED PREFIX FILE      puts products one after the other until FILE is there; prints SHA-256 and id of each
put-one FEED ID BYTES     puts one product of that size; prints its SHA-256
kill-node                 kills the node of the hub in this container with -9
served FEED TRANSPORT N   waits until N sites are served with the feed by that transport
"""

import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from downburst.local_token import authorization

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


if __name__ == "__main__":
    sys.exit(main())
