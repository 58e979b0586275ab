"""A whole hub and a site on hosts of their own, with ports for circuits between them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from kit.circuit_bed import network_of
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import WholeHub

Shown = dict[str, Any]
SITE = "far.example"


class CircuitHub:
    """`downburst hub` on the host `hub` with the feed CONDUIT, and the site far.example on another host."""

    def __init__(
        self,
        lab: Lab,
        directory: Path,
        stack: ExitStack,
        *,
        port_bps: int,
        settings: str = "",
        ledger_url: str = "",
        far: str = "far",
        parts: Callable[[WholeHub], None] = lambda _: None,
    ) -> None:
        """`parts` starts the hub's parts in processes of their own, and waits until they answer."""
        self.lab = lab
        self.before = {host: self._network(host) for host in ("hub", far)}
        self.hub = WholeHub(
            directory / "hub",
            http="127.0.0.1:7371",
            sites="0.0.0.0:7370",
            prefix=lab.command("hub", []),
            inside=partial(lab.inside, "hub"),
            ledger_url=ledger_url,
        )
        self.hub.more = settings
        stack.callback(self.hub.stop)
        self.hub.start()
        parts(self.hub)
        self.hub.ask("POST", "/v1/feeds", json={"feed": "CONDUIT", "class": "grid"})
        self._directory, self._stack, self._port_bps = directory, stack, port_bps
        self._add_port("hub")
        self.site = self.add_site(far, SITE)

    def add_site(self, host: str, name: str) -> SiteNode:
        """A site on another host, with a port for circuits; waits until it is connected."""
        self.hub.ask("POST", "/v1/sites", json={"site": name})
        self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": "CONDUIT", "pattern": ".*"})
        self._add_port(host, name)
        site = SiteNode(
            self._directory / host,
            f"{self.underlay('hub')}:7370",
            prefix=self.lab.command(host, []),
            arguments=["--circuits", self.interface(host)],
        )
        site.directory.mkdir(parents=True)
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        self._stack.callback(site.stop)
        site.start()
        wait_for("a site that is connected", lambda: self.is_connected(name), 60)
        return site

    def is_connected(self, name: str) -> bool:
        """True if the site has a session."""
        return bool(self.hub.ask("GET", f"/v1/sites/{name}")["session"]["data_connections"])

    def reserve(self, rate_bps: int, *, to: Sequence[str] = (SITE,), **fields: Any) -> Shown:
        """A circuit to some sites, from now on."""
        wish = {"sites": [{"site": name} for name in to], "rate_out_bps": rate_bps, "rate_in_bps": rate_bps}
        return self.shape(self.hub.ask("POST", "/v1/circuits", json=wish | fields))

    def shown(self, number: int) -> Shown:
        """The circuit as the api shows it, with its events."""
        return self.shape(self.hub.ask("GET", f"/v1/circuits/{number}"))

    def wait_shown(self, number: int, wanted: Callable[[Shown], bool], what: str, seconds: float = 30) -> Shown:
        """Waits until it is as wanted."""

        def found() -> Shown | None:
            shown = self.shown(number)
            return shown if wanted(shown) else None

        with suppress(AssertionError):
            return wait_for(what, found, seconds)
        raise AssertionError(f"no {what}: {self.shown(number)}\n{self.hub.log()[-2000:]}")

    def wait_state(self, number: int, state: str, seconds: float = 30) -> Shown:
        """Waits until it is in this state."""
        return self.wait_shown(
            number, lambda shown: bool(shown["state"] == state), f"circuit that is {state}", seconds
        )

    def refused(self, method: str, path: str, **request: Any) -> httpx.Response:
        """An answer that must be a refusal."""
        answer = self.hub.answer(method, path, **request)
        assert not answer.is_success, answer.text
        return answer

    def plan(self) -> Shown:
        """The one in force for the feed."""
        return self.shape(self.hub.ask("GET", "/v1/feeds/CONDUIT/plans?limit=1")[0])

    def wait_transport(self, wanted: str) -> None:
        """Waits until the circuit carries the feed."""
        with suppress(AssertionError):
            wait_for(f"plan by {wanted}", lambda: self.plan()["transport"] == wanted, 30)
        assert self.plan()["transport"] == wanted, self.plan()["reason"]

    def put(self, product_id: str, content: bytes) -> None:
        """Puts a product of the feed."""
        self.hub.ask("PUT", f"/v1/feeds/CONDUIT/products/{product_id}", content=content)

    def connections(self) -> list[str]:
        """The data connections that go by a circuit, by their addresses and ports."""
        listed = self.lab.output("hub", ["ss", "-Htn", "src", "10.231.0.0/16"]).splitlines()
        return sorted(" ".join(line.split()[-2:]) for line in listed)

    def wait_untouched(self) -> None:
        """Waits until nothing of a circuit is left on either host."""
        for host, before in self.before.items():
            with suppress(AssertionError):
                wait_for("nothing of ours", partial(self._is_untouched, host), 5)
            assert self._network(host) == before

    def interface(self, host: str) -> str:
        """The interface for circuits on a host."""
        return "eth0"

    def underlay(self, host: str) -> str:
        """The address of a host for the ends of tunnels."""
        return self.lab.address(host)

    def _network(self, host: str) -> str:
        return network_of(self.lab, host, self.interface(host))

    def _add_port(self, host: str, site: str | None = None) -> None:
        interface = self.interface(host)
        port = {"port": f"{host}-{interface}", "rate_bps": self._port_bps, "site": site, "interface": interface}
        self.hub.ask("POST", "/v1/ports", json=port | {"underlay": self.underlay(host)})

    def _is_untouched(self, host: str) -> bool:
        return self._network(host) == self.before[host]

    @staticmethod
    def shape(answer: Any) -> Shown:
        """An answer that is an object."""
        assert isinstance(answer, dict)
        return answer
