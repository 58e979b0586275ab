"""Measurements by other systems, and the test points that send them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from ipaddress import ip_address
from urllib.parse import urlsplit

from downburst.foundation.errors import BadInput


class MeasuredKind(StrEnum):
    """The tests of perfSONAR whose results are read, by pScheduler's names."""

    LATENCY = "latency"
    """One-way delay."""
    LATENCYBG = "latencybg"
    """One-way delay of a stream that does not end."""
    RTT = "rtt"
    """Round trip."""
    THROUGHPUT = "throughput"


class Unit(StrEnum):
    """The unit of a figure."""

    MICROSECONDS = "us"
    BITS_PER_SECOND = "bps"


@dataclass(frozen=True, slots=True)
class TestPoint:
    """A perfSONAR host whose results this hub takes."""

    __test__ = False

    name: str
    addresses: tuple[str, ...]
    """The names and addresses under which it stands in results, in lower case."""
    site: str | None = None
    """The site at which it stands; None: none, as at the hub."""
    created_at: datetime | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"{self.name!r} is no name of a test point; use up to 63 of a-z, 0-9, dots and hyphens")
        if not 1 <= len(self.addresses) <= MOST_ADDRESSES:
            raise BadInput(f"a test point has 1 to {MOST_ADDRESSES} addresses, and {len(self.addresses)} are given")
        object.__setattr__(self, "addresses", tuple(dict.fromkeys(map(plain_host, self.addresses))))


@dataclass(frozen=True, slots=True)
class Figure:
    """The figure of a result: the median of delays, or the mean of a rate."""

    value: float
    unit: Unit
    error: float | None = None
    """The most that the figure is wrong, in its unit, as the clocks of the test claim; None: not known."""
    lost_share: float | None = None
    """Lost packets as a share of those sent."""
    more: Mapping[str, float] = field(default_factory=dict)
    """Further values of the result, by name."""
    note: str = ""
    """A sentence where the figure is not to be taken as it stands."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One result of a test point, or the reason for which it was not taken."""

    point: str
    at: datetime
    """The start of the run; of a result that was not taken, its arrival."""
    kind: str
    source: str
    """The host from which packets went, as the result names it."""
    destination: str
    run: str
    """The name of the run at its test point; the same run is stored once."""
    figure: Figure | None = None
    refused: str = ""
    """The reason for which there is no figure."""
    number: int = 0
    source_site: str | None = None
    destination_site: str | None = None


def plain_host(text: str) -> str:
    """A name or address of a host in its one spelling: lower case, without a port or brackets; refuses others."""
    try:
        return str(ip_address(text.strip()))
    except ValueError:
        pass
    try:
        place = urlsplit(f"//{text.strip()}")
        # Reading the port refuses one that is none.
        host = "" if place.path or place.query or "@" in place.netloc else place.hostname or ""
        return str(ip_address(host)) if ":" in host else _name_of(host if place.port != 0 else "", text)
    except ValueError:
        raise _no_host(text) from None


def _name_of(host: str, text: str) -> str:
    name = host.rstrip(".").lower()
    if not _HOST.fullmatch(name):
        raise _no_host(text)
    return name


def _no_host(text: str) -> BadInput:
    return BadInput(f"{text[:80]!r} is neither a name nor an address of a host")


POINT_PREFIX = "dbm_"
"""Tokens of test points begin with it."""
MOST_ADDRESSES = 16
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*")
