"""Judges a probe of a circuit: the rate it carries, and the likely cause if that is less than was reserved.

The causes differ in what they do to a paced train of packets:

* A *policer* passes a constant rate and drops the rest at once: steady bins, loss in all of them once its bucket is
  empty, and no packet is delayed more than before.
* A *slow segment* passes a constant rate too, and keeps a queue before it drops: the delay rises by the size of its
  buffer over its rate.
* An *unprotected segment* shares with others: arrivals vary from bin to bin with the others' traffic.
* A *small buffer* passes the paced train and loses some of the packets sent back to back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from downburst.domain.circuits import LEAST_SHARE, Direction, RateProbe
from downburst.foundation.rates import rate_text


@dataclass(frozen=True, slots=True)
class Finding:
    """A circuit's carried rate, and the reason if it falls short."""

    rate_bps: int
    cause: str = ""
    sentence: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """The rates that a train was to verify."""

    reserved_bps: int
    shaped_bps: float
    """Train and products together never get more; packets beyond it wait in the shaper and are not lost."""
    train_bps: float
    """Less than that if products use the circuit."""


def judge(probe: RateProbe, asked: Asked, *, used_bps: float = 0.0) -> Finding | None:
    """The finding; products' concurrent use of the circuit counts as carried.

    None: the train made room for products that did not arrive, so it was too slow to verify the whole rate.
    """
    reserved_bps = asked.reserved_bps
    if probe.received == 0:
        return _cut(probe) if probe.sent else _unsent(probe)
    carried_bps = round(_carried(probe) + used_bps)
    if carried_bps < SHORT * min(probe.offered_bps + used_bps, asked.shaped_bps):
        return _short(probe, carried_bps, reserved_bps)
    if carried_bps < LEAST_SHARE * reserved_bps:
        slow = probe.offered_bps < SHORT * asked.train_bps
        return _slow_sender(probe, carried_bps, reserved_bps) if slow else None
    if probe.burst_sent and probe.burst_received < KEPT_OF_BURST * probe.burst_sent:
        return _small_buffer(probe, carried_bps)
    return Finding(carried_bps)


def _carried(probe: RateProbe) -> float:
    """Excludes packets still queued at the end of the train: like lost ones, they were not carried at its rate."""
    return min(probe.received_bps, probe.offered_bps * (1 - probe.loss_share))


def _short(probe: RateProbe, carried_bps: int, reserved_bps: int) -> Finding:
    said = f"{rate_text(carried_bps)} of {rate_text(reserved_bps)} get {_way(probe)}"
    if len(probe.bins_bps) < FEWEST_BINS:
        remedy = "measure again with longer trains: the setting circuits.probe_ms"
        return Finding(carried_bps, "unclear", f"{said}; the probe was too short to find the cause", remedy)
    if _unsteady(probe.bins_bps[1:]):
        low, high = min(probe.bins_bps[1:]), max(probe.bins_bps[1:])
        return Finding(
            carried_bps,
            "unprotected-segment",
            f"{said}, and the arriving rate varies between {rate_text(low)} and {rate_text(high)}: part of the "
            "path is shared with other traffic without protection",
            "ask the provider for the segment without a queue for the circuit, or route it elsewhere",
        )
    if probe.delay_rise_median_us >= QUEUE_US:
        buffer = round(carried_bps * probe.delay_rise_max_us / 8e6)
        return Finding(
            carried_bps,
            "slow-segment",
            f"{said}, steadily and after waiting up to {probe.delay_rise_max_us / 1000:.0f} ms: a segment of "
            f"{rate_text(carried_bps)} with about {max(buffer // 1024, 1)} KiB of buffer is in the path",
            "ask the provider which segment is set below the reserved rate, or modify the circuit to the rate "
            "that it carries",
        )
    return Finding(
        carried_bps,
        "policer",
        f"{said}, steadily, and the rest is dropped without waiting: a policer at {rate_text(carried_bps)} "
        "is in the path",
        "ask the provider to set its policer to the reserved rate of Ethernet frames, "
        "or modify the circuit to the rate that it passes",
    )


def _slow_sender(probe: RateProbe, carried_bps: int, reserved_bps: int) -> Finding:
    return Finding(
        carried_bps,
        SLOW_SENDER,
        f"only {rate_text(carried_bps)} of {rate_text(reserved_bps)} were sent {_way(probe)}, and all of it arrived",
        "check the load of the sending host and the shaping on its port",
    )


def _small_buffer(probe: RateProbe, rate_bps: int) -> Finding:
    kept = probe.burst_received
    return Finding(
        rate_bps,
        "small-buffer",
        f"a steady train gets {_way(probe)} whole, and only {kept} of {probe.burst_sent} packets that come back to "
        "back: a buffer in the path is small",
        "give the circuit a small burst: downburst circuits modify NUMBER --burst-bytes 6000; keep it shaped",
    )


def _cut(probe: RateProbe) -> Finding:
    return Finding(
        0,
        "cut",
        f"none of {probe.sent} packets got {_way(probe)}",
        "check that the receiver there runs with --circuits, and that the path between the ports is up",
    )


def _unsent(probe: RateProbe) -> Finding:
    """Packets that were not sent are no evidence about the path."""
    return Finding(
        0,
        SLOW_SENDER,
        f"no packet of a train {_way(probe)} was sent in time",
        "check the load of the sending host, and its log",
    )


def _way(probe: RateProbe) -> str:
    return f"to {probe.site}" if probe.direction is Direction.OUT else f"from {probe.site}"


def _unsteady(bins_bps: Sequence[float]) -> bool:
    mean_bps = fmean(bins_bps)
    return mean_bps > 0 and pstdev(bins_bps) / mean_bps > SWING


SLOW_SENDER = "slow-sender"
FEWEST_BINS = 4
SHORT = 0.95
"""A path that passes a smaller share of a train limits it."""
KEPT_OF_BURST = 0.9
SWING = 0.15
"""Standard deviation over mean of arrivals in 50 ms: bins of a policer or a shaper differ by a few packets."""
QUEUE_US = 2_000
"""A packet with a longer delay was in a queue; a busy host delays it by less."""
