"""The way of a site to its hub: direct, or through a chain of relays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from ipaddress import ip_address
from itertools import pairwise

from downburst.domain.relays.relay import MOST_OF_CHAIN, Relay
from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Core:
    """The long segment of a way between two neighbours of its chain; a circuit between their ports can carry it."""

    far: str
    """The relay towards the site."""
    near: str
    """The relay towards the hub."""

    @property
    def said(self) -> str:
        """Both relays in words."""
        return f"relays {self.far} and {self.near}"


@dataclass(frozen=True, slots=True)
class CoreCircuit:
    """A circuit that carries the core of a way."""

    circuit: int
    relay: str
    """The core's relay towards the hub."""
    address: str
    """Its address inside the circuit, without a prefix length."""

    def __post_init__(self) -> None:
        try:
            ip_address(self.address)
        except ValueError:
            raise BadInput(f"{self.address[:80]!r} is not an address inside circuit {self.circuit}") from None


@dataclass(frozen=True, slots=True)
class SiteWay:
    """The scheduler's choice for a site, with the figures on which it rests; rates are bits per second."""

    site: str
    chain: tuple[str, ...]
    """Names of relays, the nearest to the site first; empty: the direct way."""
    reason: str
    predicted_bps: int | None = None
    """By the chosen way."""
    direct_bps: int | None = None
    """The prediction for the direct way."""
    measured_bps: int | None = None
    """By the chosen way, as achieved since."""
    decided_at: datetime | None = None
    over: CoreCircuit | None = None
    """The circuit over which the way is led; None: all of it is routed."""

    @property
    def cores(self) -> tuple[Core, ...]:
        """The segments between its relays."""
        return cores_of(self.chain)

    def __post_init__(self) -> None:
        if len(self.chain) > MOST_OF_CHAIN:
            raise BadInput(
                f"the way of {self.site} has {len(self.chain)} relays, and the limit is {MOST_OF_CHAIN}; "
                "choose a shorter one"
            )


def cores_of(chain: tuple[str, ...]) -> tuple[Core, ...]:
    """The segments between the relays of a chain, the nearest to the site first."""
    return tuple(Core(far, near) for far, near in pairwise(chain))


def via_of(way: SiteWay, relays: Mapping[str, Relay]) -> list[str]:
    """The chains for the site, in the syntax of `--via`; a chain with a relay that is gone is left out.

    A way over a circuit comes first, and its routed chain after it: that is taken if the circuit fails.
    """
    addresses = {name: relays[name].address if name in relays else None for name in way.chain}
    known = {name: address for name, address in addresses.items() if address is not None}
    if not known or len(known) < len(addresses):
        return []
    routed = ",".join(known.values())
    if way.over is None or way.over.relay not in known:
        return [routed]
    inner = f"[{way.over.address}]" if ":" in way.over.address else way.over.address
    port = known[way.over.relay].rpartition(":")[2]
    return [",".join((known | {way.over.relay: f"{inner}:{port}"}).values()), routed]


def by_name(relays: Iterable[Relay]) -> dict[str, Relay]:
    """The relays by their names."""
    return {relay.name: relay for relay in relays}
