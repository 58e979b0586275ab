"""Trains of products of a whole hub in a lab, and an offer of circuits on demand for them."""

import random
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import numpy as np

from downburst.foundation.file_names import decode
from kit.circuit_hub import CircuitHub, Shown
from kit.flows import Flows
from kit.namespaces import Lab
from kit.patience import wait_for
from kit.provider import Line

M = 1_000_000
LINE_BPS, CIRCUIT_BPS = 50 * M, 25 * M
SETTINGS = "[scheduler]\nstep_s = 2\nwindow_s = 60\nagreeing_windows = 1\ndwell_s = 0\nchanges_per_day = 100\n"


@dataclass
class Trains:
    """A hub whose line to the site is full of other flows, and an offer of circuits that the line protects."""

    hub: CircuitHub
    lab: Lab
    put_s: dict[str, float] = field(default_factory=dict)

    @classmethod
    def beside(cls, stack: ExitStack, directory: Path, *, flows: int = 8) -> "Trains":
        lab = stack.enter_context(Lab(["hub", "far", "crowd"]))
        hub = CircuitHub(lab, directory, stack, port_bps=LINE_BPS, settings=SETTINGS)
        line = Line(lab, "far", rate_bps=LINE_BPS, vni=None)
        line.protect(CIRCUIT_BPS)
        if flows:
            stack.enter_context(Flows(lab, "crowd", "far", lab.address("far"), flows=flows))
            before = line.carried().other_bytes
            wait_for("a line in use", lambda: line.carried().other_bytes > before + 1_000_000)
        return cls(hub, lab)

    def offer(self, **fields: object) -> None:
        terms = {"hub_port": "hub-eth0", "ports": ["far-eth0"], "rates_bps": [CIRCUIT_BPS], "setup_s": 1.0}
        self.hub.hub.ask("PUT", "/v1/circuit-offers/campus", json=terms | fields)
        self.hub.hub.ask("PUT", "/v1/feeds/CONDUIT/pin", json={"transport": "dynamic-circuit"})
        self.hub.wait_transport("dynamic-circuit")

    def play(self, count: int, *, seconds: float, every_s: float, again: bool = False) -> list[str]:
        """Trains of 100 kB each 50 ms; returns the products, in order. `again`: the hub may be away meanwhile."""
        began_s, named = time.time(), []
        for train in range(count):
            for number in range(int(seconds * 20)):
                time.sleep(max(0.0, began_s + train * every_s + number / 20 - time.time()))
                name = f"product-{len(self.put_s)}"
                self.put_s[name] = time.time()
                content = random.Random(name).randbytes(100_000)
                if again:
                    wait_for(f"product {name} at the hub", partial(self._is_put, name, content), 60)
                else:
                    self.hub.put(name, content)
                named.append(name)
        wait_for("all products at the site", lambda: len(self._stood_s()) == len(self.put_s), 60)
        self.hub.site.wait_received(len(self.put_s))
        return named

    def p99_s(self, names: list[str]) -> float:
        stood_s = self._stood_s()
        return float(np.percentile([stood_s[name] - self.put_s[name] for name in names], 99))

    def orders(self) -> list[Shown]:
        return list(reversed(self.hub.hub.ask("GET", "/v1/circuit-orders?limit=50")["orders"]))

    def wait_step(self, step: str, seconds: float = 30) -> Shown:
        """Waits until the newest order has taken this step."""
        wait_for(f"order that is {step}", lambda: self.orders()[-1:] and self.orders()[-1]["step"] == step, seconds)
        return self.orders()[-1]

    def is_riding(self) -> bool:
        """True if the plan in force has a leg on a circuit."""
        return any(leg["circuits"] for leg in self.hub.plan()["legs"])

    def _is_put(self, name: str, content: bytes) -> bool:
        """The same product again is the same one: a feed stores it once."""
        with suppress(httpx.TransportError):
            return self.hub.hub.answer("PUT", f"/v1/feeds/CONDUIT/products/{name}", content=content).is_success
        return False

    def _stood_s(self) -> dict[str, float]:
        root = self.hub.site.directory / "received"
        files = [path for path in root.rglob("*") if path.is_file()]
        return {decode(str(path.relative_to(root))).product_id: path.stat().st_mtime for path in files}
