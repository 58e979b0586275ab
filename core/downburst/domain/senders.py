"""Nodes that send for a hub, and their assignments of feeds and sites."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Sender:
    """A node that sends for the hub, as it registered itself."""

    name: str
    address: str
    """The address for sites, HOST:PORT."""
    public_key: str
    """A point of P-256 in hex; the private key never leaves the sender."""
    certificate: str | None
    """The certificate that the hub's authority signed for that key, DER in hex; None until then."""
    authority: str | None
    """The authority's own certificate, DER in hex."""
    beats: int
    """Incremented each second while it is alive."""
    load_bps: float
    """Its recent rate to sites, in bits per second."""
    draining: bool
    seen_at: datetime


@dataclass(frozen=True, slots=True, order=True)
class Assignment:
    """A sender serves a feed to a site."""

    feed: str
    site: str
    sender: str


@dataclass(frozen=True, slots=True)
class Placement:
    """The assignment of feeds and sites to senders: all assignments, and the senders' addresses."""

    version: int = 0
    """Rises with each change, even of a restored ledger: microseconds since 1970 of the change, or one more."""
    assignments: tuple[Assignment, ...] = ()
    addresses: Mapping[str, str] | None = None
    """Addresses of the senders that are alive, by name."""

    @property
    def is_empty(self) -> bool:
        """True while the hub's own node serves everything."""
        return not self.assignments

    def feeds_of(self, sender: str) -> frozenset[str]:
        """The feeds that a sender serves to any site."""
        return frozenset(one.feed for one in self.assignments if one.sender == sender)

    def nodes_of(self) -> dict[str, list[tuple[str, list[str]]]]:
        """By site, the addresses of all senders, with the site's feeds that each of them serves."""
        addresses = self.addresses or {}
        served: dict[str, dict[str, list[str]]] = {}
        for one in sorted(self.assignments):
            served.setdefault(one.site, {}).setdefault(one.sender, []).append(one.feed)
        return {
            site: [(address, senders.get(name, [])) for name, address in sorted(addresses.items())]
            for site, senders in served.items()
        }

    @property
    def others(self) -> list[tuple[str, list[str]]]:
        """The addresses for a site without assignments: the senders to contact."""
        return [] if self.is_empty else [(address, []) for _, address in sorted((self.addresses or {}).items())]


@dataclass(frozen=True, slots=True)
class SenderSeen:
    """A sender's sign of life, several times a second: circuits that begin there live as long as these come."""

    sender: str
    run: str
    """The id of its node's process; a new one holds no circuits."""
    running: bool


@dataclass(frozen=True, slots=True)
class ClockStanding:
    """The offset of a clock from another one."""

    ahead_us: int
    """This clock minus the other, in microseconds."""
    bound_us: int
    """The maximum error of the offset."""
    compared_at: datetime

    def to(self, other: "ClockStanding") -> "ClockStanding":
        """The offset from another clock that was compared with the same third; both may have drifted since."""
        apart_s = abs((self.compared_at - other.compared_at).total_seconds())
        bound_us = self.bound_us + other.bound_us + int(apart_s * DRIFT_US_PER_S)
        return ClockStanding(self.ahead_us - other.ahead_us, bound_us, self.compared_at)


class Pulse:
    """Determines by their beats which senders are alive, on this process's own clock: others' clocks don't matter."""

    def __init__(self, dead_s: float) -> None:
        self._dead_s = dead_s
        self._seen: dict[str, tuple[int, float]] = {}
        """By sender, its last count, and the time when that was first seen."""
        self._looked_s: float | None = None

    def alive(self, senders: Iterable[Sender], now_s: float) -> list[Sender]:
        """The senders with recently risen counts; one that is new has its full time ahead."""
        if self._looked_s is not None and now_s - self._looked_s > self._dead_s / 2:
            # No beats were visible while this process could not look: the ledger was away, or the process stalled.
            self._seen = {name: (beats, now_s) for name, (beats, _) in self._seen.items()}
        self._looked_s = now_s
        found = list(senders)
        for sender in found:
            if self._seen.get(sender.name, (None, 0.0))[0] != sender.beats:
                self._seen[sender.name] = sender.beats, now_s
        return [sender for sender in found if now_s - self._seen[sender.name][1] < self._dead_s]


BEAT_S = 1.0
DEAD_S = 5.0
"""After this time without a beat a sender's feeds go to others."""
HUB_CLOCK = ""
"""The name under which the hub's own node stores its clock offset."""
DRIFT_US_PER_S = 100
"""Free-running computer clocks drift less than that."""
FENCED_S = 3.5
"""After this time without an accepted beat a sender ends its multicast legs, before others begin them."""
