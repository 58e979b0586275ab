"""Why a product was as slow as it was: the parts of its time at one site, each with a number, the largest first.

Stages come from the product's own stamps. Losses and circuits are known for the path as a whole: their share is
applied to the product's time on the line, so that all parts compare.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from downburst.deliveries.stages import duration, measured
from downburst.domain.circuits import CircuitState
from downburst.domain.latency import SiteClock
from downburst.domain.plans import Transport
from downburst.foundation.sizes import size_text

if TYPE_CHECKING:
    from downburst.deliveries.facts import ProductFacts
    from downburst.deliveries.states import Delivery


class FactorName(StrEnum):
    """The parts of a product's time; names are promises."""

    ORIGIN = "origin"
    """Before the hub had it."""
    QUEUE = "queue"
    TRANSPORT = "transport"
    """Its bytes on the line."""
    CIRCUIT = "circuit"
    TCP = "tcp"
    REPAIR = "repair"
    DISK = "disk"
    ACTION = "action"
    CLOCK = "clock"
    """The bound of all times that compare the site's clock with the hub's."""


@dataclass(frozen=True, slots=True)
class CircuitNow:
    """A circuit between the hub and a site."""

    number: int
    state: CircuitState
    reserved_bps: int
    measured_bps: int | None = None
    """By the last probe; None: not measured yet."""


@dataclass(frozen=True, slots=True)
class TcpThen:
    """The leading limit of a site's TCP connections while a product was on its way, as the tracer recorded it."""

    limit: str | None = None
    """By the tracer's name; None: there was no time with something to send."""
    share: float = 0.0
    """Of the time in which there was something to send."""
    unable: str | None = None
    """The reason why nothing was recorded."""


@dataclass(frozen=True, slots=True)
class PathNow:
    """The path to a site at present, and the limits of TCP at the time of a product."""

    circuits: tuple[CircuitNow, ...] = ()
    tcp: TcpThen | None = None
    """None: the tracer was not asked."""
    round_trip_ms: float | None = None
    resent_share: float | None = None
    """Of the segments sent by TCP; None: too few."""
    repair_share: float | None = None
    """Of the bytes that the product's multicast leg sent; None: nothing sent yet."""
    site_clock: SiteClock | None = None
    """None: not reported."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One part of the time."""

    name: FactorName
    ms: float | None
    """Time that it took, or is accountable for; None: not known."""
    share: float | None
    """Of the bytes for repair, of the reserved rate for a circuit; None: not a share."""
    sentence: str


def factors(product: "ProductFacts", delivery: "Delivery", path: PathNow) -> tuple[Factor, ...]:
    """All known parts of a delivery's time, the largest first; those without a time come last."""
    stages = {stage.name: stage.ms for stage in delivery.timing.stages}
    line_ms = stages.get("transfer", stages.get("hub-to-last-byte"))
    way = None if delivery.receipt is None else delivery.receipt.transport
    found = [
        _stage(
            FactorName.ORIGIN,
            stages.get("origin"),
            f"it was {{}} old, by its source's clock, when {product.origin} passed it to the hub",
        ),
        _stage(FactorName.QUEUE, stages.get("queue"), "it waited {} in the hub's queue for this site"),
        _transport(product, delivery, line_ms, path),
        _tcp(line_ms, path.tcp),
        _repair(line_ms, path, by_multicast=way is Transport.MULTICAST),
        _stage(FactorName.DISK, stages.get("store"), "the site took {} to check it and write it to its disk"),
        _stage(FactorName.ACTION, stages.get("action"), "its file followed {} after the site's log"),
        _clock(delivery.timing.bound_ms, path.site_clock),
        *(_circuit(circuit, line_ms, way) for circuit in path.circuits),
    ]
    known = [factor for factor in found if factor is not None]
    return tuple(sorted(known, key=lambda factor: -1.0 if factor.ms is None else factor.ms, reverse=True))


def _stage(name: FactorName, ms: float | None, sentence: str) -> Factor | None:
    return None if ms is None else Factor(name, ms, None, sentence.format(duration(ms)))


def _transport(product: "ProductFacts", delivery: "Delivery", ms: float | None, path: PathNow) -> Factor | None:
    if delivery.receipt is None or ms is None:
        return None
    way = delivery.receipt.transport.value
    # The hub's log does not say for all products when their first byte left.
    whole = any(stage.name == "hub-to-last-byte" for stage in delivery.timing.stages)
    place = "in the hub's queue and on the line" if whole else "on the line"
    trip = "" if path.round_trip_ms is None else f"; a round trip takes {duration(path.round_trip_ms)}"
    sentence = (
        f"{size_text(product.size_bytes)} were {measured(ms, delivery.timing.bound_ms)} {place}, by {way}{trip}"
    )
    return Factor(FactorName.TRANSPORT, ms, None, sentence)


def _tcp(line_ms: float | None, tcp: TcpThen | None) -> Factor | None:
    if tcp is None or line_ms is None:
        return None
    if tcp.unable is not None:
        return Factor(FactorName.TCP, None, None, f"the limits of TCP are not known: {tcp.unable}")
    if tcp.limit is None:
        return None
    limit = tcp.limit.replace("-", " ")
    sentence = f"{limit} limited TCP for {_percent(tcp.share)} of the time with bytes to send"
    return Factor(FactorName.TCP, max(line_ms, 0.0) * tcp.share, tcp.share, sentence)


def _repair(line_ms: float | None, path: PathNow, *, by_multicast: bool) -> Factor | None:
    share = path.repair_share if by_multicast else path.resent_share
    if share is None:
        return None
    sent = "the bytes of its multicast leg repair losses" if by_multicast else "the segments to this site go twice"
    ms = None if line_ms is None else max(line_ms, 0.0) * share
    return Factor(FactorName.REPAIR, ms, share, f"{_percent(share)} of {sent}")


def _circuit(circuit: CircuitNow, line_ms: float | None, way: Transport | None) -> Factor:
    """Only a product that went by circuits owes them time; a group may use one or not."""
    said = f"circuit {circuit.number} is {circuit.state.value}"
    if way is Transport.UNICAST:
        said += ", and this product went without it"
    if circuit.measured_bps is None or circuit.reserved_bps <= 0:
        return Factor(FactorName.CIRCUIT, None, None, f"{said}; its rate is not measured yet")
    share = circuit.measured_bps / circuit.reserved_bps
    by_circuit = way in (Transport.STATIC_CIRCUIT, Transport.DYNAMIC_CIRCUIT)
    ms = max(line_ms, 0.0) * max(1.0 - share, 0.0) if by_circuit and line_ms is not None else None
    sentence = f"{said}; it carries {_percent(share)} of its reserved {circuit.reserved_bps / 1e6:.3g} Mb/s"
    return Factor(FactorName.CIRCUIT, ms, share, sentence)


def _clock(bound_ms: float | None, own: SiteClock | None) -> Factor | None:
    if bound_ms is None:
        return None
    sentence = f"times across both clocks are known to within {duration(bound_ms)}"
    if own is not None and not own.synchronised:
        sentence += "; the site's clock is not synchronised, and is corrected by its comparison with the hub's"
    return Factor(FactorName.CLOCK, bound_ms, None, sentence)


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 1 else f"{share * 100:.0f} %"
