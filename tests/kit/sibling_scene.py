"""A hub with sites that give each other products, each in a namespace of its own."""

import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kit.busy import YIELDS
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for

FEED = "NGRID"
PORT = 7380
PRODUCT_BYTES = 30_000
EXCHANGE = {"upload_bytes_per_second": 50_000_000, "upload_bytes_per_day": 10_000_000_000}


class SiblingScene:
    """The hosts `hub` and one for each site."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab, self.directory = lab, directory
        self.sites: dict[str, SiteNode] = {}
        self.put: dict[str, str] = {}
        """By id of each product, SHA-256 of its bytes."""
        listen = f"{lab.address('hub')}:7370"
        command = lab.command("hub", [])
        self.hub = HubNode(directory / "hub", listen=listen, interface=lab.address("hub"), prefix=command)

    def __enter__(self) -> Self:
        self.hub.start()
        self.hub.feed(FEED)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for site in self.sites.values():
            site.stop()
        self.hub.stop()

    def add(self, name: str, *arguments: str, yields: bool = False, **exchange: int) -> SiteNode:
        """Starts a site that takes part in the exchange; waits until the feed has begun for it.

        A site that yields has only the processor time that the other hosts leave (`kit.busy.YIELDS`).
        """
        self.hub.siblings[name] = EXCHANGE | exchange
        listen = ("--siblings-listen", f"{self.lab.address(name)}:{PORT}")
        site = SiteNode(
            self.directory / name,
            self.hub.address,
            prefix=[*(YIELDS if yields else []), *self.lab.command(name, [])],
            arguments=(*listen, *arguments),
        )
        everything = {"feed": FEED, "pattern": ".*", "not_pattern": None}
        self.hub.site(name, everything, token_file=site.token_file)
        self.sites[name] = site.start()
        self.hub.wait_connected(name)
        site.wait_begun(FEED)
        return site

    def products(self, number: int, size: int = PRODUCT_BYTES) -> int:
        """Puts products with random bytes; returns the number of bytes."""
        for _ in range(number):
            product_id, content = f"product {len(self.put)}", os.urandom(size)
            self.put[product_id] = sha256(content).hexdigest()
            self.hub.put(FEED, product_id, content)
        return number * size

    def whole(self, *names: str, seconds: float = 60.0) -> None:
        """Waits until these sites have every product, and compares all bytes."""
        for name in names:
            files = self.sites[name].wait_received(len(self.put), seconds)
            assert dict(files.values()) == self.put, f"{name} has other bytes"

    def ready(self, *names: str) -> None:
        """Waits until these sites can give every product: they have all, and their reports have come to the hub."""
        self.whole(*names)
        assert self.hub.drained(), f"the hub does not know that {names} have every product"

    def off(self, *names: str) -> None:
        """Ends sites regularly: they know their position when they return."""
        for name in names:
            self.sites[name].stop()
            wait_for(f"end of {name}", lambda name=name: name not in self.connected())  # type: ignore[misc]

    def connected(self) -> set[str]:
        """The sites with a session."""
        return {session["site"] for session in self.hub.do("status")["sessions"]}

    def count(self, host: str, to: Sequence[str]) -> None:
        """Begins to count the bytes that a host sends to each of these."""
        rules = "".join(f'ip daddr {self.lab.address(other)} counter comment "{other}";' for other in to)
        chain = f"chain out {{ type filter hook output priority 0; {rules} }};"
        table = "table inet siblings_count"
        self.lab.output(host, ["nft", "-f", "-"], given=f"{table} {{}}\ndelete {table}\n{table} {{ {chain} }}\n")

    def sent(self, host: str, to: str) -> int:
        """The bytes that a host has sent to another one since `count`, with the headers of IP and TCP."""
        listed = json.loads(self.lab.output(host, ["nft", "-j", "list", "table", "inet", "siblings_count"]))
        rules: list[dict[str, Any]] = [entry["rule"] for entry in listed["nftables"] if "rule" in entry]
        own = (rule for rule in rules if rule.get("comment") == to)
        return sum(part["counter"]["bytes"] for rule in own for part in rule["expr"] if "counter" in part)

    def saved(self, site: str) -> tuple[int, int]:
        """The products and bytes that siblings gave to a site, by the hub's account."""
        lines = [one for event in self.hub.events_named("siblings") for one in event["saved"] if one["site"] == site]
        return sum(one["products"] for one in lines), sum(one["bytes"] for one in lines)
