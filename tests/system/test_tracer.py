"""The tracer names the cause of a slow connection: loss, a buffer, a disk or the application; it measures outages."""

import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from downburst.foundation.clock import to_us
from downburst_analyze.output.plots import x_of
from downburst_api.sites.tracing import traced_out
from downburst_app.cli.sites.time_sequence import page
from downburst_worker.messages.tracer_lines import traced_site
from kit.capabilities import needs
from kit.namespaces import Lab
from kit.node import HubNode, SiteNode
from kit.patience import wait_for
from kit.slow_disk import slow_disk
from kit.wire import Lane, Wire

pytestmark = [pytest.mark.system, pytest.mark.root, pytest.mark.alone]

PORT = 7370
RATE_BPS = 50_000_000
DELAY_MS = 15.0
OUTAGE_S = 1.0
LARGE_BYTES = 8_000_000
DISK_BYTES_PER_S = 2_000_000
"""A third of the rate of the wire."""


@dataclass
class World:
    """One hub; each site is behind a wire of its own and takes a feed of its own, by one connection."""

    lab: Lab
    home: Path
    hub: HubNode
    wires: dict[str, Wire] = field(default_factory=dict)
    sites: dict[str, SiteNode] = field(default_factory=dict)

    def connect(
        self,
        name: str,
        *,
        loss_every: int | None = None,
        whole_segments: bool = False,
        directory: Path | None = None,
    ) -> Wire:
        """Starts a site behind a wire that loses every so manyth frame to it."""
        lanes = (Lane(RATE_BPS, DELAY_MS, every=loss_every), Lane(RATE_BPS, DELAY_MS))
        wire = self.wires[name] = Wire(self.lab, "hub", name, to_right=lanes[0], to_left=lanes[1])
        wire.__enter__()
        if whole_segments:
            # Otherwise the kernel takes 64 kB at once into the smallest buffer.
            self.lab.output("hub", ["ip", "link", "set", wire.device, "gso_max_segs", "1"])
        address = f"{wire.left_address}:{PORT}"
        site = self.sites[name] = SiteNode(directory or self.home / name, address, prefix=self.lab.command(name, []))
        self.hub.feed(name.upper())
        self.hub.data_connections[name] = 0
        wish = {"feed": name.upper(), "pattern": ".*", "not_pattern": None}
        self.hub.site(name, wish, token_file=site.token_file)
        site.start()
        self.hub.wait_connected(name)
        return wire

    def busy(self, name: str, size: int) -> dict[str, Any]:
        """Sends a product to a site; returns the connection while it travelled."""
        from_us = time.time_ns() // 1_000
        self.hub.put(name.upper(), "product", os.urandom(size))
        self.sites[name].wait_received(1, 60)
        return self.ask(name, from_us, time.time_ns() // 1_000)

    def ask(self, name: str, from_us: int, to_us: int) -> dict[str, Any]:
        """The tracer's answer about the one connection of a site."""
        answer = self.hub.do("tracer", site=name, from_us=from_us, to_us=to_us)
        assert answer["unable"] is None
        (connection,) = answer["connections"]
        found: dict[str, Any] = connection
        return found

    def close(self) -> None:
        """Ends everything but the lab."""
        for site in self.sites.values():
            site.stop()
        self.hub.stop()
        for wire in self.wires.values():
            wire.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    needs("root", "netns", "veth", "bridge", "tun")
    with Lab(["hub", "lossy", "narrow", "choked", "slow", "quiet"]) as lab:
        hub = HubNode(tmp_path / "hub", listen=f"0.0.0.0:{PORT}", prefix=lab.command("hub", []))
        hub.start()
        world = World(lab, tmp_path, hub)
        try:
            yield world
        finally:
            world.close()


def shares(connection: dict[str, Any]) -> dict[str, float]:
    found = {one["limit"]: one["share"] for one in connection["verdict"]["shares"]}
    assert sum(found.values()) == pytest.approx(1)
    return found


def test_a_lossy_path_is_named(world: World) -> None:
    world.connect("lossy", loss_every=25)
    connection = world.busy("lossy", 1_500_000)
    assert connection["verdict"]["leading"] == "network-loss", shares(connection)


def test_a_small_receive_window_is_named(world: World) -> None:
    # bbr paces between the limits of the window, and the kernel counts half of the time only.
    world.lab.output("hub", ["sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno"])
    world.lab.output("narrow", ["sysctl", "-qw", "net.ipv4.tcp_rmem=4096 16384 16384"])
    world.connect("narrow")
    connection = world.busy("narrow", 500_000)
    assert connection["verdict"]["leading"] == "receive-window", shares(connection)


def test_a_quiet_feed_is_the_applications_and_an_outage_is_a_stall_of_its_length(world: World) -> None:
    wire = world.connect("quiet")
    from_us = time.time_ns() // 1_000

    def judged() -> dict[str, Any] | None:
        answer = world.hub.do("tracer", site="quiet", from_us=from_us, to_us=time.time_ns() // 1_000)
        (connection,) = answer["connections"] or [{"verdict": None}]
        return connection if connection["verdict"] and connection["verdict"]["seconds"] > 2 else None

    quiet = wait_for("two seconds are judged", judged)
    assert quiet["verdict"]["leading"] == "application", shares(quiet)
    assert quiet["stalls"] == []
    outage(wire, lambda: world.hub.put("QUIET", "product", b"small"))
    world.sites["quiet"].wait_received(1)

    def ended() -> dict[str, Any] | None:
        stalls = world.ask("quiet", from_us, time.time_ns() // 1_000)["stalls"]
        assert len(stalls) <= 1, stalls
        return next((stall for stall in stalls if stall["ended"]), None)

    stall = wait_for("the stall ended", ended)
    drawn_s, width_s = drawn(world.hub.do("tracer", site="quiet", from_us=from_us, to_us=time.time_ns() // 1_000))
    assert drawn_s == pytest.approx(OUTAGE_S, abs=0.2)
    assert width_s == pytest.approx(drawn_s, abs=0.05)
    assert (stall["until_us"] - stall["from_us"]) / 1e6 == pytest.approx(OUTAGE_S, abs=0.2)
    assert stall["waiting_bytes"] > 0


def test_a_small_send_buffer_is_named(world: World) -> None:
    world.lab.output("hub", ["sysctl", "-qw", "net.ipv4.tcp_wmem=4096 16384 16384"])
    world.connect("choked", whole_segments=True)
    connection = world.busy("choked", 500_000)
    assert connection["verdict"]["leading"] == "send-buffer", shares(connection)


def test_a_slow_disk_of_the_site_is_named(world: World, tmp_path: Path) -> None:
    """The site reads on as soon as its log has taken what came."""
    with slow_disk(tmp_path, DISK_BYTES_PER_S) as disk:
        world.connect("slow", directory=disk.directory / "site")
        disk.bind(world.sites["slow"].process.pid)
        try:
            connection = world.busy("slow", 2 * LARGE_BYTES)
        finally:
            world.sites["slow"].stop()
    assert connection["verdict"]["leading"] == "receiver", shares(connection)
    assert "disk" in connection["verdict"]["sentence"]


def test_a_product_alone_on_its_way_is_in_the_report_of_traffic_with_the_rate_of_the_line(world: World) -> None:
    """Forecasts of rates use it."""
    world.connect("quiet")
    put = 0

    def reported() -> list[dict[str, Any]]:
        nonlocal put
        put += 1
        world.hub.put("QUIET", f"product-{put}", os.urandom(LARGE_BYTES))
        world.sites["quiet"].wait_received(put, 60)
        sessions = [session for event in world.hub.events_named("traffic") for session in event["sessions"]]
        return [one for session in sessions for one in session.get("transfers", ())]

    (first, *_) = wait_for("a transfer, once the clocks are compared", reported, 60)
    assert first["bytes"] == LARGE_BYTES
    assert 0.3 * RATE_BPS < first["bytes"] * 8e6 / first["took_us"] <= 1.05 * RATE_BPS


def drawn(answer: dict[str, Any]) -> tuple[float, float]:
    """The length of the one stall on the page of plots: as labelled, and by the width of the shaded span."""
    found = traced_site(answer)
    (connection,) = found.connections
    (rect,) = re.findall('<rect class="stall"[^>]*>', page(traced_out("quiet", found)))
    labelled, width = (float(re.findall(f' {name}="([^"]+)"', rect)[0]) for name in ("data-seconds", "width"))
    ends = [stall.until for stall in connection.stalls]
    first, last = connection.samples[0][0], connection.samples[-1][0]
    assert first is not None
    assert last is not None
    span_s = (max(last, *map(to_us, ends)) - first) / 1e6
    return labelled, width / (x_of(1) - x_of(0)) * span_s


def outage(wire: Wire, act: Any) -> None:
    """Holds the wire still for a second: its frames wait in the hosts' queues, and none is lost."""
    process = wire._process.pid
    os.kill(process, signal.SIGSTOP)
    ends = time.monotonic() + OUTAGE_S
    try:
        act()
        # The length of the outage is what is measured.
        time.sleep(max(0.0, ends - time.monotonic()))
    finally:
        os.kill(process, signal.SIGCONT)
