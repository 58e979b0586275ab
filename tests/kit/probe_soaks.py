"""Soaks beside greedy flows: on a circuit that the provider protects, and on the routed path of the same line."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, pstdev
from threading import Event, Thread
from typing import Any

from kit.circuit_hub import SITE, CircuitHub
from kit.flows import Flows
from kit.namespaces import Lab
from kit.node import SiteNode
from kit.patience import wait_for
from kit.provider import Line

M = 1_000_000
LINE_BPS, CIRCUIT_BPS, SOAK_BPS = 50 * M, 30 * M, 18 * M
SHALLOW_BYTES = 30_000
"""BBR's flows keep it full, whatever they lose."""
FLOWS, FLOWS_S, PAUSE_S = 8, 3.0, 2.0
BY_CIRCUIT = "lightpath.example"


@dataclass(frozen=True)
class Soak:
    """The end of a soak."""

    variation: float
    """The coefficient of variation of the rate from second to second."""
    loss: float
    sent_variation: float
    """That of the sender's rate: a busy machine sends late."""


@dataclass(frozen=True)
class Soaks:
    """Two soaks at the same time."""

    circuit: Soak
    routed: Soak


def soaks_beside_flows(
    directory: Path, stack: ExitStack, *, seconds: float, transport: str = "udp", control: str = "bbr"
) -> Soaks:
    """Soaks to two sites of one host: one has its session on the circuit, the other one on the routed path."""
    lab = stack.enter_context(Lab(["hub", "far", "crowd"]))
    world = CircuitHub(lab, directory, stack, port_bps=100 * M)
    Line(lab, "far", rate_bps=LINE_BPS, vni=None, buffer_bytes=SHALLOW_BYTES).protect(CIRCUIT_BPS)
    number = world.reserve(CIRCUIT_BPS)["circuit"]
    # A busy machine sends the circuit's own probes late, which degrades it and changes nothing about its queue.
    world.wait_shown(number, lambda shown: shown["state"] in ("active", "degraded"), "circuit that is up", 60)
    _join(world, directory, stack, near=world.shown(number)["ends"][0]["address"].partition("/")[0])
    stack.enter_context(_coming_and_going(lab, control))
    begun = {site: _begin(world, site, seconds, transport) for site in (BY_CIRCUIT, SITE)}
    ended = {site: _ended(world, number, seconds) for site, number in begun.items()}
    return Soaks(ended[BY_CIRCUIT], ended[SITE])


@contextmanager
def _coming_and_going(lab: Lab, control: str) -> Iterator[None]:
    """Greedy flows to the site's host, as transfers of a few seconds: they come and go."""
    over = Event()

    def run() -> None:
        while not over.is_set():
            with Flows(lab, "crowd", "far", lab.address("far"), flows=FLOWS, control=control):
                over.wait(FLOWS_S)
            over.wait(PAUSE_S)

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(timeout=30)


def _join(world: CircuitHub, directory: Path, stack: ExitStack, *, near: str) -> None:
    """A second site of the host, which connects to the hub's end of the circuit."""
    world.hub.ask("POST", "/v1/sites", json={"site": BY_CIRCUIT})
    site = SiteNode(directory / "lightpath", f"{near}:7370", prefix=world.lab.command("far", []))
    site.directory.mkdir()
    site.token_file.write_text(world.hub.ask("POST", f"/v1/sites/{BY_CIRCUIT}/tokens", json={})["token"])
    stack.callback(site.stop)
    site.start()
    wait_for("a session on the circuit", lambda: world.hub.ask("GET", f"/v1/sites/{BY_CIRCUIT}")["connected"], 60)


def _begin(world: CircuitHub, site: str, seconds: float, transport: str) -> int:
    wanted = {"site": site, "kind": "soak", "rate_bps": SOAK_BPS, "seconds": seconds, "transport": transport}
    return int(world.hub.ask("POST", "/v1/probes", json=wanted)["id"])


def _ended(world: CircuitHub, number: int, seconds: float) -> Soak:
    def found() -> dict[str, Any] | None:
        probe: dict[str, Any] = world.hub.ask("GET", f"/v1/probes/{number}")
        return probe if probe["ended_at"] else None

    probe = wait_for(f"the end of soak {number}", found, seconds + 60)
    assert probe["state"] == "done", probe["reason"]
    result = probe["result"]
    told = world.hub.ask("GET", f"/v1/probes/{number}/seconds", params={"limit": 3_600})
    # The first and the last second are parts.
    sent = [one["sent"] for one in told[1:-1]]
    return Soak(result["variation"], result["steps"][0]["loss"], pstdev(sent) / fmean(sent))
