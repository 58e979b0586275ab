"""Rows of small messages: ours on a multicast leg and core NATS, at one rate, by one clock."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.harness.counters import cpu_s, link_bytes, moved
from bench.harness.delivery import HUB, sites_of
from bench.harness.schedules import steady
from bench.harness.stamps import percentile
from bench.peers.consumers import Consumers
from bench.peers.nats.peer import PORT, nats_server
from bench.peers.tools import PEERS
from bench.product.fleet import FEED, Fleet
from bench.product.multicast_leg import on_leg
from kit.namespaces import Lab


@dataclass(frozen=True)
class Messages:
    """One run: the latency of every message at every site, and its cost."""

    median_ms: float
    p99_ms: float
    worst_ms: float
    wire_share: float
    """Bytes on the sender's link over the bytes of the messages."""
    cpu_us: float
    """Of all processes but the source, per message at one site."""
    intake_median_ms: float | None = None
    """Ours: from the moment at which the hub turned to a message until it stood in the hub's log."""


def messages_by_leg(lab: Lab, directory: Path, *, per_s: float, seconds: float) -> Messages:
    """From the hub's log to the site's log, by the stamps in both."""
    sites = sites_of(lab)
    planned = list(steady(FEED, MESSAGE_BYTES, per_s=per_s, seconds=seconds))
    with Fleet(lab, directory, sites) as fleet:
        on_leg(fleet, sites, LEG_BPS)
        links, before = link_bytes(lab), fleet.cpu()
        account = fleet.play(planned)
        fleet.drained()
        spent_s, links = fleet.cpu().since(before).all_s, moved(link_bytes(lab), links)
        arrivals = fleet.finish()
    stamps = [of_site.between(account["began_us"]) for of_site in arrivals.at_sites.values()]
    taken_in = np.concatenate([of_site.hub_stored_us - of_site.created_us for of_site in stamps])
    latency_us = np.concatenate([of_site.latency_us for of_site in stamps])
    of_all = summed_up(latency_us, len(planned), links[HUB].sent, spent_s)
    return Messages(*of_all, intake_median_ms=percentile(taken_in, 50) / 1000)


def messages_by_nats(lab: Lab, directory: Path, *, per_s: float, seconds: float) -> Messages:
    """From the call that publishes to the client's call-back; nothing is kept."""
    messages = round(per_s * seconds)
    client, url = str(PEERS / "nats-fan-out"), f"nats://{lab.address(HUB)}:{PORT}"
    order = ["stamped", url, str(messages), str(MESSAGE_BYTES), str(round(per_s))]
    with nats_server(lab, directory) as server, Consumers(lab, [client, "consume", *order]) as consumers:
        links, before_s = link_bytes(lab), cpu_s([server.pid])
        consumers.go()
        lab.output(HUB, [client, "publish", *order], timeout_s=seconds + 60)
        consumed = consumers.wait()
        spent_s = cpu_s([server.pid]) - before_s + consumed.cpu_s
        links = moved(link_bytes(lab), links)
    consumed.needs(messages)
    latency_us = np.concatenate([np.array(account["latency_us"]) for account in consumed.accounts])
    return Messages(*summed_up(latency_us, messages, links[HUB].sent, spent_s))


def summed_up(
    latency_us: NDArray[np.int64], messages: int, wire_bytes: int, spent_s: float
) -> tuple[float, float, float, float, float]:
    """Figures of a run in the order of `Messages`."""
    milliseconds = latency_us / 1000
    tail = (percentile(milliseconds, 50), percentile(milliseconds, 99), float(milliseconds.max()))
    return (*tail, wire_bytes / (messages * MESSAGE_BYTES), spent_s * 1e6 / len(latency_us))


MESSAGE_BYTES = 2_000
LEG_BPS = 400_000_000
"""Far above the load, as the link is for NATS."""
