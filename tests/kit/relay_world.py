"""A hub, hosts for relays, and a site at a line of its own."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.relay import RelayNode

FEED = "CONDUIT"
PRODUCT_BYTES = 400_000
SITE_RATE_BPS = 40_000_000


@dataclass
class RelayWorld:
    """A hub, hosts for relays, and a site at a line of its own."""

    lab: Lab
    home: Path
    stack: ExitStack
    hub: HubNode
    put: dict[str, str] = field(default_factory=dict)

    def relay(self, host: str, *to: str) -> RelayNode:
        """Starts a relay on a host."""
        listen = f"{self.lab.address(host)}:7379"
        relay = RelayNode(self.home / f"{host}.log", to, listen=listen, prefix=self.lab.command(host, []))
        relay.start()
        self.stack.callback(relay.stop)
        return relay

    def site(self, *arguments: str) -> SiteNode:
        """Starts the site with these further arguments."""
        site = SiteNode(self.home / "far", self.hub.address, prefix=self.lab.command("far", []), arguments=arguments)
        wish = {"feed": FEED, "pattern": ".*", "not_pattern": None}
        self.hub.site("far", wish, token_file=site.token_file)
        self.stack.callback(site.stop)
        site.start()
        return site

    def begun(self, *arguments: str) -> SiteNode:
        """Starts the site, and waits until every further product is owed to it."""
        site = self.site(*arguments)
        self.hub.wait_connected("far")
        site.wait_begun(FEED)
        return site

    def send(self, products: int) -> None:
        """Puts further products."""
        for _ in range(products):
            content = os.urandom(PRODUCT_BYTES)
            name = f"product {len(self.put)}"
            self.hub.put(FEED, name, content)
            self.put[name] = sha256(content).hexdigest()

    def complete(self, site: SiteNode) -> None:
        """Waits for all products; fails if one is lost, changed or doubled."""
        received = site.wait_received(len(self.put), 120)
        assert dict(received.values()) == self.put
        assert len(received) == len(self.put)
        assert self.hub.drained()


@contextmanager
def relay_world(home: Path) -> Iterator[RelayWorld]:
    """The hub runs, at a line that is slow enough for products to be on their way."""
    needs("root", "netns", "veth", "bridge")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(["hub", "relay", "second", "far"]))
        hub = HubNode(home / "hub", listen=f"{lab.address('hub')}:7370", prefix=lab.command("hub", []))
        stack.callback(hub.stop)
        hub.start()
        hub.feed(FEED)
        lab.rate("far", down_bps=SITE_RATE_BPS)
        yield RelayWorld(lab, home, stack, hub)
