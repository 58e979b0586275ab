"""A whole hub that probes its site over a wire of known rate, by the commands that an operator types."""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from downburst.foundation.file_names import decode
from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.whole_hub import DOWNBURST, WholeHub
from kit.wire import Lane, Wire

Shown = dict[str, Any]
SITE, FEED = "unl.edu", "NGRID"
HTTP = "127.0.0.1:7371"


@dataclass
class ProbedHub:
    """`downburst hub` on the host `hub`, and its sites on the host `far` at the other end of a wire."""

    lab: Lab
    wire: Wire
    hub: WholeHub
    sites: dict[str, SiteNode] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    """By product id, the wall clock before its put."""

    @property
    def site(self) -> SiteNode:
        """The probed site."""
        return self.sites[SITE]

    def add_site(self, name: str, directory: Path) -> SiteNode:
        """Adds a site that takes the feed, and starts it at the other end of the wire."""
        self.hub.ask("POST", "/v1/sites", json={"site": name})
        self.hub.ask("POST", f"/v1/sites/{name}/subscriptions", json={"feed": FEED, "pattern": ".*"})
        site = SiteNode(directory, f"{self.wire.left_address}:7370", prefix=self.lab.command("far", []))
        site.directory.mkdir()
        site.token_file.write_text(self.hub.ask("POST", f"/v1/sites/{name}/tokens", json={})["token"])
        self.sites[name] = site.start()
        site.wait_begun(FEED)
        return site

    def add_ports(self, rate_bps: int) -> None:
        """Adds the ports of hub and site, so that the calendar has the rate of their line."""
        for name, site, underlay in (
            ("hub-port", None, self.wire.left_address),
            ("far-port", SITE, self.wire.right_address),
        ):
            port = {"port": name, "rate_bps": rate_bps, "interface": self.wire.device, "underlay": underlay}
            self.hub.ask("POST", "/v1/ports", json=port | {"site": site})

    def hold(self, rate_bps: int) -> int:
        """Holds a circuit of this rate in both directions for ten minutes; returns its number."""
        wanted = {"sites": [{"site": SITE}], "rate_out_bps": rate_bps, "rate_in_bps": rate_bps, "hold_s": 600}
        return int(self.hub.ask("POST", "/v1/circuits", json=wanted)["circuit"])

    def command(self, *argv: str, seconds: float = 300) -> "subprocess.CompletedProcess[str]":
        """Runs `downburst` at the hub's host with the operator's token."""
        command = self.lab.command("hub", [DOWNBURST, *argv])
        return subprocess.run(
            command, capture_output=True, text=True, env=self._environment, timeout=seconds, check=False
        )

    def probed(self, *argv: str) -> Shown:
        """The result of `downburst probe`, to its end, whatever that is."""
        run = self.command("probe", *argv, "--json")
        assert run.stdout, run.stderr
        return dict(json.loads(run.stdout))

    def begin(self, kind: str, **wanted: Any) -> int:
        """Requests a probe, and waits until it runs."""
        number = int(self.hub.ask("POST", "/v1/probes", json={"site": SITE, "kind": kind, **wanted})["id"])
        self.wait_state(number, "running")
        return number

    def probe(self, number: int) -> Shown:
        """The probe as the api shows it."""
        return dict(self.hub.ask("GET", f"/v1/probes/{number}"))

    def wait_state(self, number: int, *states: str, seconds: float = 60) -> Shown:
        """Waits until a probe is in one of these states."""

        def found() -> Shown | None:
            probe = self.probe(number)
            assert probe["ended_at"] is None or probe["state"] in states, probe["reason"]
            return probe if probe["state"] in states else None

        return wait_for(f"probe {number} that is {' or '.join(states)}", found, seconds)

    def seconds(self, number: int) -> list[Shown]:
        """The stored seconds of a probe."""
        return list(self.hub.ask("GET", f"/v1/probes/{number}/seconds"))

    def plan(self) -> Shown:
        """The plan in force."""
        return dict(self.hub.ask("GET", f"/v1/feeds/{FEED}/plans", params={"limit": 1})[0])

    def wait_connected(self) -> None:
        """Waits until the site has a session."""
        wait_for("a site that is connected", lambda: self.hub.ask("GET", f"/v1/sites/{SITE}")["session"], 60)

    def put(self, product_id: str, content: bytes) -> None:
        """Puts a product of the feed."""
        with self.hub.inside(), self._client() as api:
            self._put(api, product_id, content)

    def play(self, seconds: float, *, every_s: float, product_bytes: int, name: str) -> list[str]:
        """Puts products at a constant rate for a time; returns their ids."""
        began_s, played = time.monotonic(), list[str]()
        with self.hub.inside(), self._client() as api:
            while (due_s := len(played) * every_s) < seconds:
                time.sleep(max(0.0, began_s + due_s - time.monotonic()))
                played.append(f"{name}/{len(played)}")
                self._put(api, played[-1], os.urandom(product_bytes))
        return played

    def latencies_s(self, products: Sequence[str]) -> list[float]:
        """The time from each put to the file at the site, once all are there."""
        there: dict[str, float] = {}

        def complete() -> bool:
            there.update(self._stored(set(products) - there.keys()))
            return len(there) == len(products)

        wait_for("all products at the site", complete, 60)
        return [there[product] - self.sent[product] for product in products]

    def _stored(self, wanted: set[str]) -> Iterator[tuple[str, float]]:
        root = self.site.directory / "received"
        for path in root.rglob("*"):
            if path.is_file() and (product := decode(str(path.relative_to(root))).product_id) in wanted:
                yield product, path.stat().st_mtime

    def _put(self, api: httpx.Client, product_id: str, content: bytes) -> None:
        self.sent[product_id] = time.time()
        api.put(f"/v1/feeds/{FEED}/products/{product_id}", content=content).raise_for_status()

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://{HTTP}", headers=self.hub.authorization, timeout=60)

    @property
    def _environment(self) -> dict[str, str]:
        token = str(self.hub.directory / "data" / "operator.token")
        return {**os.environ, "DOWNBURST_HUB": f"http://{HTTP}", "DOWNBURST_TOKEN_FILE": token}


@contextmanager
def probed_hub(
    home: Path,
    lane: Lane,
    *,
    settings: str = "",
    objective_ms: int = 2_000,
    sites: Sequence[str] = (SITE,),
    congestion: str | None = None,
) -> Iterator[ProbedHub]:
    """The hub with its sites connected; the wire is as `lane` in both directions.

    `congestion`: the congestion control of the sessions, in place of the system's.
    """
    needs("root", "netns", "veth", "bridge", "tun")
    with Lab(["hub", "far"]) as lab, ExitStack() as stack:
        wire = stack.enter_context(Wire(lab, "hub", "far", to_right=lane, to_left=lane))
        lab.output("hub", ["ip", "route", "replace", "239.0.0.0/8", "dev", wire.device])
        environment = [f"DOWNBURST_MULTICAST__INTERFACE={wire.left_address}"]
        environment += [f"DOWNBURST_TCP_CONGESTION={congestion}"] if congestion else []
        hub = WholeHub(
            home / "hub",
            http=HTTP,
            sites="0.0.0.0:7370",
            prefix=lab.command("hub", ["env", *environment]),
            inside=partial(lab.inside, "hub"),
            more=settings,
        ).start()
        stack.callback(hub.stop)
        hub.ask("POST", "/v1/feeds", json={"feed": FEED, "class": "grid", "objective_ms": objective_ms})
        scene = ProbedHub(lab, wire, hub)
        for name in sites:
            stack.callback(scene.add_site(name, home / name).stop)
        yield scene


def ended_s(probe: Shown) -> float:
    """The wall clock at the end of a probe."""
    return datetime.fromisoformat(probe["ended_at"]).timestamp()
