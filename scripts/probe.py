"""Asks a hub from inside its own container or pod, for the smoke tests: `python - COMMAND ... < scripts/probe.py`.

put-one FEED ID BYTES     puts one product of that size; prints its SHA-256
served FEED TRANSPORT N   waits until N sites are served with the feed by that transport
"""

import hashlib
import random
import sys
import time
from typing import Any
from urllib.parse import quote

import httpx

from downburst.local_token import authorization

HUB = "http://127.0.0.1:7371"
PATIENCE_S = 120.0
"""How long something may take on a machine that does other work besides."""


def main() -> int:
    """Does what the first argument says."""
    command, *arguments = sys.argv[1:]
    with httpx.Client(base_url=HUB, timeout=60, headers=authorization(HUB)) as hub:
        if command == "put-one":
            print(_put(hub, arguments[0], arguments[1], random.randbytes(int(arguments[2]))))  # noqa: S311
        elif command == "served":
            return _served(hub, arguments[0], transport=arguments[1], sites=int(arguments[2]))
        else:
            sys.stderr.write(f"there is no {command!r}\n{__doc__}")
            return 2
    return 0


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
