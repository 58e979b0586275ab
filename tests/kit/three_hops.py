"""Two domains with data planes: A's hub and site are joined by two nodes of B, which A orders by NSI.

    hub of A ──(tags 100-109)── node one of B ──(VNIs 3000-3009)── node two of B ──(tags 200-209)── site of A

B's hub is on a host of its own, which no frame of the circuit passes. All hosts share one network, so an interface
captures the tunnels that begin or end at its host.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from kit.capture import Capture
from kit.circuit_bed import network_of
from kit.circuit_hub import CircuitHub, Shown
from kit.domains import HOLD_S, NSA_A, NSA_B, TOPOLOGY, M
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.nsi.server import Authority
from kit.patience import wait_for
from kit.whole_hub import WholeHub

PORT_BPS, RATE_BPS = 200 * M, 20 * M
HOSTS = "hub", "far", "one", "two", "b"
STATIONS = "hub", "one", "two", "far"
"""The hosts that frames pass, from the hub on."""
RANGES = (100, 109), (3000, 3009), (200, 209)
"""The tags of each hop."""
PORT = 7373


class DomainA(CircuitHub):
    """Hub and site of A. Their ports have the names and tags of B's network."""

    def _add_port(self, host: str, site: str | None = None) -> None:
        (first, last), gate = (RANGES[0], "one") if site is None else (RANGES[2], "two")
        port = {"port": f"{host}-eth0", "rate_bps": PORT_BPS, "site": site, "interface": "eth0"}
        tags = {"first_vlan": first, "last_vlan": last, "stp": f"{TOPOLOGY}:{host}"}
        self.hub.ask("POST", "/v1/ports", json=port | tags | {"underlay": self.underlay(host)})
        there = {"port": f"b-{gate}", "rate_bps": PORT_BPS, "underlay": self.underlay(gate)}
        self.hub.ask("POST", "/v1/ports", json=there)

    def join(self) -> None:
        """Declares the links to the machines of B."""
        domains = [{"name": "a.example"}, {"name": "b.example", "ports": ["b-one", "b-two"]}]
        links = [link("near", "hub-eth0", "b-one", RANGES[0]), link("far", "far-eth0", "b-two", RANGES[2])]
        self.hub.ask("PUT", "/v1/topology", json={"domains": domains, "links": links})

    def order(self, mbps: int = RATE_BPS // M, **fields: Any) -> Shown:
        """A circuit from B, from now on."""
        return self.reserve(mbps * M, driver="nsi", provider="b", **fields)


class DomainB:
    """Hub of B, and its two sites at the border, which receive no products."""

    def __init__(self, lab: Lab, directory: Path, stack: ExitStack, settings: str) -> None:
        self.lab, self.directory, self.stack = lab, directory, stack
        self.hub = WholeHub(
            directory / "hub-b",
            multicast_network="239.79.0.0/24",
            http="127.0.0.1:7371",
            sites="0.0.0.0:7370",
            prefix=lab.command("b", []),
            inside=partial(lab.inside, "b"),
        )
        self.hub.more = settings
        stack.callback(self.hub.stop)
        self.hub.start()
        self.sites = {host: self._site(host) for host in ("one", "two")}
        self._join()

    def circuits(self) -> list[Shown]:
        """Those that are not finished."""
        return [dict(one) for one in self.hub.ask("GET", "/v1/circuits?limit=100")]

    def _site(self, host: str) -> SiteNode:
        name = f"{host}.example"
        self.hub.ask("POST", "/v1/sites", json={"site": name})
        port = {"port": f"{host}-eth0", "rate_bps": PORT_BPS, "site": name, "interface": "eth0"}
        self.hub.ask("POST", "/v1/ports", json=port | {"underlay": self.lab.address(host)})
        site = SiteNode(
            self.directory / host,
            f"{self.lab.address('b')}:7370",
            prefix=self.lab.command(host, []),
            arguments=["--circuits", "eth0"],
        )
        site.directory.mkdir(parents=True)
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        self.stack.callback(site.stop)
        site.start()
        wait_for(f"a session of {name}", lambda: self.hub.ask("GET", f"/v1/sites/{name}")["session"], 60)
        return site

    def _join(self) -> None:
        for host, (first, last) in (("hub", RANGES[0]), ("far", RANGES[2])):
            port = {"port": f"a-{host}", "rate_bps": PORT_BPS, "underlay": self.lab.address(host)}
            tags = {"first_vlan": first, "last_vlan": last, "stp": f"{TOPOLOGY}:{host}"}
            self.hub.ask("POST", "/v1/ports", json=port | tags)
        switches = [
            {"name": name, "domain": "b.example", "ports": [f"{name}-a", f"{name}-b"], "translates": True}
            | {"node": f"{host}.example"}
            for name, host in (("s1", "one"), ("s2", "two"))
        ]
        ends = ("a-hub", "s1-a"), ("s1-b", "s2-a"), ("s2-b", "a-far")
        links = [link(f"hop-{number}", *pair, RANGES[number]) for number, pair in enumerate(ends)]
        domains = [{"name": "a.example", "ports": ["a-hub", "a-far"]}, {"name": "b.example"}]
        topology = {"domains": domains, "switches": switches, "links": links}
        self.hub.ask("PUT", "/v1/topology", json=topology)


class ThreeHops:
    """Both domains in a lab of their own."""

    def __init__(self, stack: ExitStack, directory: Path) -> None:
        self.lab = lab = stack.enter_context(Lab(HOSTS))
        self.before = {host: network_of(lab, host) for host in HOSTS}
        authority = Authority(directory, "authority").make()
        address = lab.address("b")
        ours, theirs = (authority.sign(name, address=at) for name, at in (("hub-a", "127.0.0.1"), ("hub-b", address)))
        settings = (
            f'[circuits.provider]\nlisten = "{address}:{PORT}"\nnsa = "{NSA_B}"\nhold_s = {HOLD_S}\n'
            f'certificate = "{theirs.certificate}"\nkey = "{theirs.key}"\nauthorities = "{theirs.authorities}"\n'
            'subjects = ["CN=hub-a"]\n'
        )
        self.b = DomainB(lab, directory, stack, settings)
        self.a = DomainA(lab, directory, stack, port_bps=PORT_BPS)
        self.a.join()
        record = {
            "url": f"https://{address}:{PORT}/",
            "provider_nsa": NSA_B,
            "requester_nsa": NSA_A,
            "certificate": str(ours.certificate),
            "key": str(ours.key),
            "authorities": str(ours.authorities),
        }
        self.a.hub.ask("PUT", "/v1/circuit-providers/b", json=record)
        self.sent = 0

    def states(self) -> tuple[list[str], list[str]]:
        """The states of the unfinished circuits at A, and at B."""
        ours = self.a.hub.ask("GET", "/v1/circuits?limit=100")
        return [one["state"] for one in ours], [one["state"] for one in self.b.circuits()]

    def wait_states(self, a: Sequence[str], b: Sequence[str], seconds: float = 120) -> None:
        """Waits until both hubs have circuits in these states alone."""
        wait_for(f"{a} at A and {b} at B", lambda: self.states() == ([*a], [*b]), seconds)

    def tags(self) -> list[int]:
        """The tags of the three hops in the calendars: A's as granted, and B's along its path."""
        (circuit,) = self.b.circuits()
        return [hop["tag"] for hop in self.b.hub.ask("GET", f"/v1/circuits/{circuit['circuit']}")["path"]]

    def seen(self, products: int) -> dict[tuple[str, str], set[int]]:
        """The identifiers of tunnels while A sends products to its site, by the ends of the tunnels."""
        found: dict[tuple[str, str], set[int]] = {}
        names = {self.lab.address(host): host for host in HOSTS}
        with Capture(self.lab, "one") as one, Capture(self.lab, "two") as two:
            self.products(products)
            for frame in (*one.tunnels(), *two.tunnels()):
                found.setdefault((names[frame.source], names[frame.to]), set()).add(frame.vni)
        return found

    def expected(self) -> dict[tuple[str, str], set[int]]:
        """The identifiers that the calendars give each hop, there and back."""
        hops = zip(pairwise(STATIONS), self.tags(), strict=True)
        return {pair: {tag} for hop, tag in hops for pair in (hop, hop[::-1])}

    def products(self, number: int) -> None:
        """Sends so many further products, and waits until the site has them."""
        for _ in range(number):
            self.sent += 1
            self.a.put(f"p{self.sent}", b"%d " % self.sent * 10_000)
        self.a.site.wait_received(self.sent)

    def wait_untouched(self) -> None:
        """Waits until no host has anything of a circuit."""
        for host in HOSTS:
            wait_for(f"nothing of a circuit at {host}", partial(self._is_untouched, host), 20)

    def _is_untouched(self, host: str) -> bool:
        return network_of(self.lab, host) == self.before[host]


def link(name: str, a: str, z: str, tags: tuple[int, int]) -> Shown:
    """A line between two ports, with VNIs."""
    wanted = {"kind": "vni", "first": tags[0], "last": tags[1]}
    return {"name": name, "a": a, "z": z, "az_bps": PORT_BPS, "za_bps": PORT_BPS, "tags": wanted}
