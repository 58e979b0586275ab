"""A source that continues whatever is killed, one site, and the ledger's final state of both."""

import hashlib
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import httpx

from downburst.domain.latency import LatencyKind
from downburst.ledger import Ledger
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import WholeHub


class Api(Protocol):
    """The address of a hub's api, and the authorization of its operator."""

    @property
    def http(self) -> str: ...

    @property
    def authorization(self) -> dict[str, str]: ...


class Source(threading.Thread):
    """Puts product after product into NGRID, each until it is acknowledged."""

    def __init__(self, hub: Api) -> None:
        super().__init__(daemon=True)
        self.hub = hub
        self.acknowledged: dict[int, str] = {}
        self.over = threading.Event()

    def run(self) -> None:
        """Runs until the end is signalled."""
        url, authorization = f"http://{self.hub.http}", self.hub.authorization
        # The same limit as in `downburst play`: the address of a pod that is gone does not even refuse connections.
        timeout = httpx.Timeout(60, connect=5)
        with httpx.Client(base_url=url, timeout=timeout, headers=authorization) as client:
            number = 0
            while not self.over.wait(0.02):
                number += 1
                content = b"%d " % number * 300
                sequence = self._put(client, number, content)
                assert sequence not in self.acknowledged, f"sequence {sequence} was given twice"
                self.acknowledged[sequence] = hashlib.sha256(content).hexdigest()

    def _put(self, client: httpx.Client, number: int, content: bytes) -> int:
        while True:
            with suppress(httpx.TransportError):
                answer = client.put(f"/v1/feeds/NGRID/products/p{number}", content=content)
                if answer.is_success:
                    return int(answer.json()["sequence"])
            self.over.wait(0.05)

    def more(self, products: int) -> None:
        """Waits until this number of further products was acknowledged."""
        goal = len(self.acknowledged) + products
        wait_for(f"{products} more products", lambda: len(self.acknowledged) >= goal, 60)

    def lacking_at(self, site: SiteNode) -> set[int]:
        """Acknowledged sequences that the site lacks."""
        wanted = set(self.acknowledged)
        return wanted - {sequence for _, sequence in site.received()}

    def finish(self) -> None:
        """Stops after the current product."""
        self.over.set()
        self.join(timeout=60)


def enrolled(hub: WholeHub, home: Path) -> SiteNode:
    """A site of the hub that is subscribed to NGRID, and has begun."""
    hub.ask("POST", "/v1/feeds", json={"feed": "NGRID", "class": "grid"})
    hub.ask("POST", "/v1/sites", json={"site": "unl.edu", "multicast_interface": "127.0.0.1"})
    hub.ask("POST", "/v1/sites/unl.edu/subscriptions", json={"feed": "NGRID", "pattern": ".*"})
    site = SiteNode(home / "site", hub.sites)
    site.directory.mkdir()
    site.token_file.write_text(hub.ask("POST", "/v1/sites/unl.edu/tokens", json={})["token"])
    site.start()
    wait_for("the site's first checkpoint", lambda: list((site.directory / "state").rglob("*.cbor")), 60)
    return site


def counted_once(url: str, products: int) -> None:
    """Waits until the ledger counts exactly these numbers of arrivals, receipts and latencies."""

    def counted() -> tuple[int, int, int]:
        ledger = Ledger.look_into(url)
        with ledger.transaction(writes=False) as tx:
            stored = sum(report.stored for report in tx.measured.settled.all())
            timed = sum(row.count for row in tx.measured.latency.rows(kind=LatencyKind.DISTRIBUTION))
            arrived = sum(minute.products for minute in tx.measured.traffic.minutes())
        ledger.close()
        return stored, timed, arrived

    wait_for("all receipts to be counted", lambda: counted()[0] >= products)
    wait_for("all arrivals to be counted", lambda: counted()[2] >= products)
    assert counted() == (products, products, products)
