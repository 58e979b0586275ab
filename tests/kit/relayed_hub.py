"""A whole hub with relays and sites in a lab, and products that are counted at every site."""

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.relay import RelayNode
from kit.whole_hub import WholeHub

FEED = "NGRID"
PORT, RELAY_PORT = 7370, 7379


class RelayedHub:
    """A hub on the host `hub`; relays and sites are added by name. The stack ends all processes."""

    def __init__(self, lab: Lab, home: Path, stack: ExitStack, *, multicast: bool = True, more: str = "") -> None:
        self._lab, self._home, self._stack = lab, home, stack
        environment = (
            "DOWNBURST_MULTICAST__INTERFACE=eth0",
            f"DOWNBURST_MULTICAST__ENABLED={str(multicast).lower()}",
        )
        self.sites: dict[str, SiteNode] = {}
        self.put: dict[str, str] = {}
        self.hub = WholeHub(
            home / "hub",
            http="127.0.0.1:7371",
            sites=f"0.0.0.0:{PORT}",
            top="time_scale = 10",
            prefix=lab.command("hub", ["env", *environment]),
            inside=partial(lab.inside, "hub"),
            more=more,
        ).start()
        stack.callback(self.hub.stop)
        self.hub.ask("POST", "/v1/feeds", json={"feed": FEED, "class": "grid"})

    def relay(
        self, name: str, host: str, hub_address: str, *arguments: str, to: Sequence[str] = (), **wanted: Any
    ) -> RelayNode:
        """Adds a relay to the hub with these values, and starts it on a host."""
        self.hub.ask("PUT", f"/v1/relays/{name}", json=wanted)
        directory = self._home / name
        directory.mkdir()
        token_file = directory / "token"
        token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        enrolment = ["--hub", hub_address, "--token-file", str(token_file), "--dir", str(directory / "state")]
        relay = RelayNode(
            directory / "relay.log",
            to=to,
            listen=f"0.0.0.0:{RELAY_PORT}",
            prefix=self._lab.command(host, []),
            arguments=[*enrolment, *arguments],
        )
        relay.start()
        self._stack.callback(relay.stop)
        wait_for(f"the session of relay {name}", lambda: self.shown_relay(name)["connected"], 60)
        return relay

    def site(self, name: str, host: str, hub_address: str, **values: Any) -> SiteNode:
        """Adds a site that takes the feed, starts it, and waits until it has begun."""
        self.hub.ask("POST", "/v1/sites", json={"site": name, **values})
        self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": FEED, "pattern": ".*"})
        site = SiteNode(self._home / name, hub_address, prefix=self._lab.command(host, []))
        site.directory.mkdir()
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        site.start()
        self._stack.callback(site.stop)
        site.wait_begun(FEED)
        self.sites[name] = site
        return site

    def shown_relay(self, name: str) -> dict[str, Any]:
        """The relay as the api shows it."""
        return dict(self.hub.ask("GET", f"/v1/relays/{name}"))

    def plan(self) -> dict[str, Any]:
        """The plan in force."""
        found: list[dict[str, Any]] = self.hub.ask("GET", f"/v1/feeds/{FEED}/plans", params={"limit": 1})
        return found[0]

    def complete(self, names: Sequence[str] = ()) -> None:
        """Waits for all products at all sites, or at these; fails if one is lost, changed or doubled."""
        for name in names or self.sites:
            received = self.sites[name].wait_received(len(self.put), 180)
            assert dict(received.values()) == self.put, name
            assert len(received) == len(self.put), name


class Products:
    """Puts products of random content at a steady rate during the block."""

    def __init__(self, world: RelayedHub, *, product_bytes: int, every_s: float) -> None:
        self._world, self._bytes, self._every_s = world, product_bytes, every_s
        self._over = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Products":
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        self._thread.join(timeout=60)
        if self._failure is not None and failure[0] is None:
            raise self._failure

    def more(self, products: int) -> None:
        """Waits until this number of further products was acknowledged."""
        goal = len(self._world.put) + products
        wait_for(f"{products} more products", lambda: self._failure or len(self._world.put) >= goal, 120)

    def _run(self) -> None:
        hub = self._world.hub
        try:
            with (
                hub.inside(),
                httpx.Client(base_url=f"http://{hub.http}", headers=hub.authorization, timeout=60) as api,
            ):
                while not self._over.wait(self._every_s):
                    content = os.urandom(self._bytes)
                    name = f"product/{len(self._world.put)}"
                    api.put(f"/v1/feeds/{FEED}/products/{name}", content=content).raise_for_status()
                    self._world.put[name] = sha256(content).hexdigest()
        except Exception as failure:  # noqa: BLE001 - raised where the block ends
            self._failure = failure
