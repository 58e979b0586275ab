"""On a long path that loses packets the hub opens data connections by itself; they bring products faster than one."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.wire import Lane, Wire

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

PRODUCTS = 100
PRODUCT_BYTES = 90_000
"""CONDUIT's."""
LINE = Lane(rate_bps=100_000_000, delay_ms=35, loss=0.003, buffer_bytes=1_000_000)
"""More loss than a research network has: a test of seconds has to meet it as often as a path does in minutes."""
BACK = Lane(rate_bps=100_000_000, delay_ms=35)
GAIN = 1.5


@pytest.fixture
def lab() -> Iterator[Lab]:
    needs("root", "netns", "veth", "bridge", "tun", "nft-numgen")
    with Lab(["hub", "auto", "one"]) as lab:
        yield lab


def test_a_long_lossy_path_gets_data_connections_by_itself(lab: Lab, tmp_path: Path) -> None:
    # The default of most systems; some others use one that reduces the rate less after a loss.
    cubic = {"tcp_congestion": "cubic"}
    hub = HubNode(tmp_path / "hub", listen="0.0.0.0:7370", prefix=lab.command("hub", []), options=cubic)
    with ExitStack() as stack:
        wires = {
            name: stack.enter_context(Wire(lab, "hub", name, to_right=LINE, to_left=BACK)) for name in ("auto", "one")
        }
        stack.callback(hub.stop)
        hub.start()
        hub.feed("CONDUIT")
        hub.data_connections["one"] = 0
        took_s = {name: bring(hub, lab, stack, tmp_path / name, wire) for name, wire in wires.items()}
    print(f"{PRODUCTS} products took {took_s} s: {took_s['one'] / took_s['auto']:.1f} times as fast")
    assert took_s["one"] >= GAIN * took_s["auto"]


def bring(hub: HubNode, lab: Lab, stack: ExitStack, directory: Path, wire: Wire) -> float:
    """Delivers the products to one site over its wire; returns the time that this took, in seconds."""
    name = wire.right
    site = SiteNode(directory, f"{wire.left_address}:7370", prefix=lab.command(name, []))
    hub.site(name, {"feed": "CONDUIT", "pattern": f"^{name}", "not_pattern": None}, token_file=site.token_file)
    site.start()
    stack.callback(site.stop)
    hub.wait_connected(name)
    most = 0
    put = {f"{name} {number}": os.urandom(PRODUCT_BYTES) for number in range(PRODUCTS)}
    began = time.monotonic()
    for product_id, content in put.items():
        hub.put("CONDUIT", product_id, content)
    done = False
    while not done:
        assert time.monotonic() - began < 150
        done = len(site.received()) >= PRODUCTS
        most = max(most, session(hub, name)["data_connections"])
        time.sleep(0.1)
    took_s = time.monotonic() - began
    received = sorted(site.received().values())
    assert received == sorted((product_id, sha256(content).hexdigest()) for product_id, content in put.items())
    told = session(hub, name)
    print(f"{name}: {took_s:.1f} s, at most {most} data connections; {told['data_connections_reason']}")
    if name == "one":
        assert (most, told["data_connections_reason"]) == (0, "the operator set the number")
    else:
        assert most >= 2
        assert told["data_connections_reason"]
    return took_s


def test_a_data_connection_that_breaks_costs_nothing_and_comes_again(lab: Lab, tmp_path: Path) -> None:
    hub = HubNode(tmp_path / "hub", listen=f"{lab.address('hub')}:7370", prefix=lab.command("hub", []))
    with ExitStack() as stack:
        stack.callback(hub.stop)
        hub.start()
        hub.feed("CONDUIT")
        hub.data_connections["one"] = 0
        site = SiteNode(tmp_path / "one", hub.address, prefix=lab.command("one", []))
        hub.site("one", {"feed": "CONDUIT", "pattern": ".", "not_pattern": None}, token_file=site.token_file)
        site.start()
        stack.callback(site.stop)
        hub.wait_connected("one")
        first = ports(lab)
        hub.data_connections["one"] = 3
        hub.tell_sites()
        wait_for("three data connections", lambda: open_streams(hub, "one") == 3)
        lab.rate("one", down_bps=20_000_000)
        put = {f"p {number}": os.urandom(PRODUCT_BYTES) for number in range(60)}
        for product_id, content in put.items():
            hub.put("CONDUIT", product_id, content)
        wait_for("some products", lambda: len(site.received()) > 5)
        cut(lab, list(set(ports(lab)) - set(first))[:2])
        received = site.wait_received(len(put), 60)
        assert sorted(received.values()) == sorted(
            (name, sha256(content).hexdigest()) for name, content in put.items()
        )
        wait_for("three data connections again", lambda: open_streams(hub, "one") == 3)
        assert not [event for event in hub.events_named("session") if event["state"] == "closed"]
        hub.data_connections["one"] = 1
        hub.tell_sites()
        wait_for("the operator's new number", lambda: open_streams(hub, "one") == 1)


def session(hub: HubNode, site: str) -> dict[str, Any]:
    return next(session for session in hub.do("status")["sessions"] if session["site"] == site)


def open_streams(hub: HubNode, site: str) -> int:
    sessions = [session for session in hub.do("status")["sessions"] if session["site"] == site]
    return int(sessions[0]["data_connections"]) if sessions else 0


def cut(lab: Lab, cut_ports: list[int]) -> None:
    """Resets connections of the site at the hub; the site sees only silence."""
    listed = ", ".join(str(port) for port in cut_ports)
    hook = "type filter hook input priority -300;"
    rules = f"table inet cut {{\nchain input {{\n{hook}\ntcp dport {{ {listed} }} reject with tcp reset\n}}\n}}\n"
    lab.output("one", ["nft", "-f", "-"], given=rules)


def ports(lab: Lab) -> list[int]:
    """The ports of the site's connections to the hub."""
    listed = lab.output("one", ["ss", "-Htn", "state", "established", "dport", "=", ":7370"])
    return [int(line.split()[2].rsplit(":", 1)[1]) for line in listed.splitlines()]
