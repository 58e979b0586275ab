"""A hub and a site on hosts of their own with a circuit between them, driven by the node's lines."""

import random
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for

Line = dict[str, Any]


class Bed:
    """A hub and a site that takes part in circuits, each in a host of its own."""

    def __init__(
        self,
        lab: Lab,
        directory: Path,
        stack: ExitStack,
        *,
        circuits: bool = True,
        rate_bps: int = 60_000_000,
        port: str = "eth0",
        privileged: bool = True,
        feeds: Sequence[str] = ("CONDUIT",),
        listen: str = "0.0.0.0",
        between: Sequence[str] = (),
    ) -> None:
        self.rate_bps, self.port = rate_bps, port
        self.lab, self.directory, self.stack = lab, directory, stack
        less = () if privileged else ("setpriv", "--bounding-set=-net_admin")
        self.hub = HubNode(directory / "hub", listen=f"{listen}:7370", prefix=lab.command("hub", less))
        self.before = {host: self.network(host) for host in ("hub", "far", *between)}
        stack.callback(self.hub.stop)
        self.hub.start()
        for feed in feeds:
            self.hub.feed(feed)
        arguments = ["--circuits", port] if circuits else []
        self.site = SiteNode(
            directory / "far", f"{lab.address('hub')}:7370", prefix=lab.command("far", []), arguments=arguments
        )
        everything = [{"feed": feed, "pattern": ".*", "not_pattern": None} for feed in feeds]
        self.hub.site("far", *everything, token_file=self.site.token_file)
        stack.callback(self.site.stop)
        self.site.start()
        self.hub.wait_connected("far")
        self.between = {host: self._site_between(host) for host in between}

    def _site_between(self, host: str) -> SiteNode:
        """A site on the way, which receives nothing."""
        prefix = self.lab.command(host, [])
        site = SiteNode(
            self.directory / host,
            f"{self.lab.address('hub')}:7370",
            prefix=prefix,
            arguments=["--circuits", self.port],
        )
        self.hub.site(host, token_file=site.token_file)
        self.stack.callback(site.stop)
        site.start()
        self.hub.wait_connected(host)
        return site

    def lease(self, number: int = 17, **fields: Any) -> Line:
        """A circuit between the two."""
        common = {"interface": self.port, "vlan": None}
        hub, far = self.lab.address("hub"), self.lab.address("far")
        ends = [
            {"end": "hub-eth0", "site": None, "underlay": hub, "address": "10.9.0.0/31"} | common,
            {"end": "far-eth0", "site": "far", "underlay": far, "address": "10.9.0.1/31"} | common,
        ]
        line = {
            "lease": number,
            "driver": "linux",
            "shape": "point-to-point",
            "replication": "head-end",
            "group": None,
        }
        rates = {
            "rate_out_bps": self.rate_bps,
            "rate_in_bps": self.rate_bps,
            "shaped_share": 0.9,
            "burst_bytes": None,
        }
        return line | rates | {"vni": 700 + number, "cap": "hard", "until_us": None, "ends": ends} | fields

    def up(self, **fields: Any) -> Line:
        return self.hub.do("circuit-up", circuit=self.lease(**fields))

    def ride(self, version: int = 1) -> None:
        """Plans feed CONDUIT onto the circuit."""
        leg = {"leg": 7, "transport": "static-circuit", "sites": ["far"], "circuits": [{"site": "far", "lease": 17}]}
        self.hub.do("plan", feed="CONDUIT", version=version, legs=[leg])

    def wait_riding(self) -> None:
        """Waits until a data connection goes by the circuit."""
        wait_for(
            "a data connection on the circuit", lambda: self.lab.output("hub", ["ss", "-Htn", "src", "10.9.0.0"])
        )

    def rate(self, direction: str = "out") -> Line:
        probe = {"rate_bps": self.rate_bps, "duration_ms": 600, "direction": direction}
        return dict(self.hub.do("circuit-probe", lease=17, site="far", kind="rate", **probe)["probe"])

    def files(self) -> list[Path]:
        """The files at the site."""
        return [path for path in (self.site.directory / "received").rglob("*") if path.is_file()]

    def hub_log(self) -> str:
        """The log of the hub's node."""
        return (self.hub.directory / "hub.log").read_text()

    def network(self, host: str) -> str:
        """All network state of a host that circuits may change."""
        return network_of(self.lab, host, self.port)

    def wait_untouched(self, *hosts: str) -> None:
        """Waits until none of the test's changes are left."""
        for host in hosts:
            with suppress(AssertionError):
                wait_for("nothing of ours", partial(self.is_untouched, host), 5)
            assert self.network(host) == self.before[host]

    def is_untouched(self, host: str) -> bool:
        return self.network(host) == self.before[host]

    def sent_by_circuit(self) -> int:
        """Bytes sent over the circuit, as the hub's node reported."""
        told = [entry for event in self.hub.events_named("traffic") for entry in event["circuits"]]
        return sum(entry["out_bytes"] for entry in told)

    def put(self, product_id: str, size: int, *, feed: str = "CONDUIT") -> tuple[str, str]:
        content = random.Random(product_id).randbytes(size)
        self.hub.put(feed, product_id, content)
        return product_id, sha256(content).hexdigest()


def network_of(lab: Lab, host: str, port: str = "eth0") -> str:
    """All network state of a host that circuits may change, as the host's own tools print it."""
    shown = [
        ["ip", "-brief", "address"],
        ["ip", "route", "show", "table", "all"],
        ["tc", "qdisc", "show"],
        ["tc", "class", "show", "dev", port],
        ["tc", "filter", "show", "dev", port],
        ["nft", "list", "ruleset"],
    ]
    lines = [line for argv in shown for line in lab.output(host, argv).splitlines()]
    # The kernel adds this one a second after the interface was made.
    return "\n".join(line for line in lines if not line.startswith("local fe80::"))
