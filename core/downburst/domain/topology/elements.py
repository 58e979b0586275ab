"""The elements of a topology: domains, switches, links, hosts, and windows of maintenance.

Rates are Ethernet-frame bits per second. Ports of the hub and of sites are those of circuits
(`downburst.domain.circuits.Port`); a topology names them and adds the ports of switches. Every element checks its own
values and raises `ValueError` with a sentence; `Topology` checks that they fit together.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class TagKind(StrEnum):
    """The identifier that tells circuits on a link apart."""

    VLAN = "vlan"
    """IEEE 802.1Q: 1 to 4094."""
    VNI = "vni"
    """RFC 7348: 24 bits; 0 is left out."""

    @property
    def highest(self) -> int:
        """The highest tag of this kind."""
        return HIGHEST_VLAN if self is TagKind.VLAN else HIGHEST_VNI


@dataclass(frozen=True, slots=True)
class TagRange:
    """The tags that circuits may have on a link."""

    kind: TagKind
    first: int
    last: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last <= self.kind.highest:
            raise ValueError(
                f"{self.first}-{self.last} is no range of {self.kind}s; they are 1 to {self.kind.highest}, "
                "the lower one first"
            )


@dataclass(frozen=True, slots=True)
class Domain:
    """A network under one administration."""

    name: str
    description: str = ""
    ports: tuple[str, ...] = ()
    """Ports of circuits on machines of this network: it sets up what is there, and no node of ours does."""

    def __post_init__(self) -> None:
        _check_name("domain", self.name)
        _check_text("domain", self.name, self.description)
        if self.ports:
            _check_list("domain", self.name, self.ports, MOST_PORTS)


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch with its ports."""

    name: str
    domain: str
    ports: tuple[str, ...]
    translates: bool = False
    """True if a circuit may leave it with another tag than it came with."""
    node: str | None = None
    """The site whose node translates there; None: the switch itself does, or nothing does."""

    def __post_init__(self) -> None:
        _check_name("switch", self.name)
        if self.node is not None and not self.translates:
            raise ValueError(
                f"switch {self.name} has the node of {self.node} and does not translate; set translates, or leave "
                "the node out"
            )
        for port in self.ports:
            _check_name(f"the port of switch {self.name}:", port)
        _check_list("switch", self.name, self.ports, MOST_PORTS)


@dataclass(frozen=True, slots=True)
class Link:
    """A line between two ports."""

    name: str
    a: str
    """A port of the hub, of a site or of a switch, like `z`."""
    z: str
    az_bps: int
    """The rate that circuits may reserve from `a` to `z`."""
    za_bps: int
    tags: TagRange | None = None
    """None: circuits aren't told apart by tags."""
    cost: int = 1
    """Its length for the shortest path, in any unit that all links share."""

    def __post_init__(self) -> None:
        _check_name("link", self.name)
        if self.a == self.z:
            raise ValueError(f"link {self.name} leads from {self.a} to itself; name two ports")
        for rate_bps in (self.az_bps, self.za_bps):
            if not 1 <= rate_bps <= HIGHEST_BPS:
                raise ValueError(f"link {self.name} has a rate of {rate_bps} b/s; give 1 to {HIGHEST_BPS}")
        if not 1 <= self.cost <= HIGHEST_COST:
            raise ValueError(f"link {self.name} has a cost of {self.cost}; give 1 to {HIGHEST_COST}")


@dataclass(frozen=True, slots=True)
class Host:
    """A machine of the hub or of a site that circuits end at; its ports share its network card."""

    name: str
    ports: tuple[str, ...]
    """Ports of circuits."""
    nic_bps: int
    """The rate of its network card, in each direction."""

    def __post_init__(self) -> None:
        _check_name("host", self.name)
        _check_list("host", self.name, self.ports, MOST_PORTS)
        if not 1 <= self.nic_bps <= HIGHEST_BPS:
            raise ValueError(f"host {self.name} has a rate of {self.nic_bps} b/s; give 1 to {HIGHEST_BPS}")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A window [begin, end), in UTC, in which elements take no new reservation."""

    name: str
    of: tuple[str, ...]
    """Names of links, switches, hosts or ports of circuits."""
    begin: datetime
    end: datetime
    reason: str = ""

    def __post_init__(self) -> None:
        _check_name("maintenance", self.name)
        _check_text("maintenance", self.name, self.reason)
        _check_list("maintenance", self.name, self.of, MOST_PORTS)
        if self.begin.tzinfo is None or self.end.tzinfo is None:
            raise ValueError(f"maintenance {self.name} has a time without an offset; write 2026-01-31T06:00:00Z")
        if self.end <= self.begin:
            raise ValueError(f"maintenance {self.name} ends not after its begin; give a later end")


def _check_name(kind: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise ValueError(f"{kind} {name!r} has no usable name; use 1 to 63 letters, digits and . _ : -")


def _check_text(kind: str, name: str, text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the text of {kind} {name} has {len(text)} characters; give at most {MOST_CHARACTERS}")


def _check_list(kind: str, name: str, listed: tuple[str, ...], most: int) -> None:
    if not 1 <= len(listed) <= most:
        raise ValueError(f"{kind} {name} lists {len(listed)} names; give 1 to {most}")
    if len(set(listed)) != len(listed):
        raise ValueError(f"{kind} {name} lists a name twice; list each once")


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,62}")
HIGHEST_VLAN, HIGHEST_VNI = 4094, 2**24 - 1
HIGHEST_BPS = 10**15
HIGHEST_COST = 10**6
MOST_PORTS = 1_000
MOST_CHARACTERS = 500
