"""Rows of a link that is long or narrow: a model feed over 70 ms, and warnings beside a giant."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.harness.delivery import HUB
from bench.harness.schedules import Planned, at_random, steady, together
from bench.harness.stamps import percentile
from bench.peers import tcp_stream
from bench.peers.consumers import Consumers
from bench.product.fleet import FEED, Fleet
from bench.product.play import Live
from bench.unicast.live import Latency, latency
from kit.namespaces import Lab
from kit.wire import Lane, Wire

SITE = "site0"


@dataclass(frozen=True)
class Far:
    """A minute of a model feed to one far site, and the same bytes in one TCP connection without a hub."""

    ours: Latency
    one_stream: Latency
    wire_lag_p99_ms: float
    """Lateness of the wire itself: the machine's share in both."""


def model_feed(directory: Path, *, seconds: float, seed: int = 1) -> Far:
    """CONDUIT's peak minute, or a part of it, over 100 Mb/s, 70 ms round trip and 0.01 % loss."""
    products = round(MODEL_MEGABYTES_PER_S * 1e6 * seconds / MODEL_BYTES)
    planned = list(at_random(FEED, MODEL_BYTES, products=products, seconds=seconds, seed=seed))
    with Lab((HUB, SITE)) as lab:
        with _long_wire(lab) as wire:
            one_stream = _one_stream(lab, wire, directory, planned)
            wire.stop()
        with _long_wire(lab) as wire:
            with Fleet(lab, directory / "fleet", [SITE], address=wire.left_address) as fleet:
                before = fleet.cpu()
                account = fleet.play(planned)
                fleet.drained()
                live = Live(account, fleet.cpu().since(before), fleet.finish())
            lag_ms = wire.stop().lag_p99_us / 1000
    return Far(latency(live), one_stream, lag_ms)


def warnings_beside_giant(lab: Lab, directory: Path, *, seconds: float) -> Latency:
    """A product that fills a link of 100 Mb/s for this long, and five warnings a second of the same site."""
    lab.rate(SITE, down_bps=LINK_BPS)
    giant = Planned(0, BULK, round(seconds * LINK_BPS / 8), "the giant")
    # They begin after the large product has started and end before it does.
    of_warnings = steady(WARNINGS, WARNING_BYTES, per_s=WARNINGS_PER_S, seconds=0.9 * seconds - 1)
    late = (Planned(1_000_000 + it.at_us, it.feed, it.size_bytes, it.product_id) for it in of_warnings)
    feeds = {BULK: "bulk", WARNINGS: "warning"}
    with Fleet(lab, directory, [SITE], feeds=feeds) as fleet:
        before = fleet.cpu()
        account = fleet.play(list(together([giant], late)))
        fleet.drained()
        live = Live(account, fleet.cpu().since(before), fleet.finish())
    stamps = live.arrivals.at_sites[SITE].between(account["began_us"])
    if stamps.of(BULK).stored_us.max() < stamps.of(WARNINGS).stored_us.max():
        raise RuntimeError("the giant arrived before the last warning: nothing was measured beside it")
    of_all = stamps.of(WARNINGS).latency_us / 1000
    late_ms = account["late_worst_us"] / 1000
    return Latency(percentile(of_all, 50), percentile(of_all, 99), float(of_all.max()), late_ms)


def _long_wire(lab: Lab) -> Wire:
    to_site = Lane(rate_bps=LINK_BPS, delay_ms=35, loss=0.0001, buffer_bytes=BUFFER_BYTES)
    return Wire(lab, HUB, SITE, to_right=to_site, to_left=Lane(rate_bps=LINK_BPS, delay_ms=35))


def _one_stream(lab: Lab, wire: Wire, directory: Path, planned: list[Planned]) -> Latency:
    """The physical comparison: the same schedule in one connection, in clear, without a log."""
    schedule = directory / "tcp-schedule"
    schedule.parent.mkdir(parents=True, exist_ok=True)
    schedule.write_text(json.dumps([(product.at_us, product.size_bytes) for product in planned]))
    with Consumers(lab, tcp_stream.argv("receive", wire.right_address)) as receivers:
        receivers.go()
        sent = lab.output(HUB, tcp_stream.argv("send", wire.right_address, str(schedule)), timeout_s=300)
        [account] = receivers.wait().accounts
    due_us = json.loads(sent)["began_us"] + np.array([product.at_us for product in planned])
    of_all = (np.array(account["arrived_us"]) - due_us) / 1000
    return Latency(percentile(of_all, 50), percentile(of_all, 99), float(of_all.max()), 0.0)


LINK_BPS = 100_000_000
MODEL_MEGABYTES_PER_S = 250 / 60
MODEL_BYTES = 90_000
BUFFER_BYTES = 875_000
"""The bytes in flight at 100 Mb/s in 70 ms: the buffer that a router of such a path should have."""
BULK, WARNINGS = "SATELLITE", "WARNINGS"
WARNING_BYTES = 1_500
WARNINGS_PER_S = 5.0
