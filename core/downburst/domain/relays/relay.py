"""Relays that a hub enrols: each one is a site that takes no product, and a machine on the way to other sites."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from downburst.foundation.errors import BadInput
from downburst.foundation.names import check_site_name


class FanOut(StrEnum):
    """The way in which a relay hands out the one copy of a leg."""

    GROUP = "group"
    """To a multicast group of its own network."""
    UNICAST = "unicast"
    """To each site by UDP, from the relay's own address."""


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay, with the sites behind it."""

    name: str
    """The name of its site record too, which holds credentials and rights."""
    address: str | None = None
    """HOST:PORT at which its sites reach it; None: it splices no connections."""
    fan_out: FanOut | None = None
    """None: it takes no copies of legs."""
    sites: tuple[str, ...] = ()
    """The sites behind it; a name of another relay means that this one is on its way to the hub."""
    feeds: tuple[str, ...] = ("*",)
    """The feeds granted to it, `*` for all: the allow list of its site record."""
    created_at: datetime | None = None

    def __post_init__(self) -> None:
        check_site_name(self.name)
        if self.address is not None:
            check_relay_address(self.address)
        if self.address is None and self.fan_out is None:
            raise BadInput(f"relay {self.name} carries nothing; give an address for its sites, a fan-out, or both")
        if not self.feeds:
            raise BadInput(f"relay {self.name} may carry no feed; name its feeds, or `*` for all")
        if self.name in self.sites:
            raise BadInput(f"relay {self.name} can't be behind itself; leave it out of its sites")
        if len(self.sites) > MOST_SITES:
            raise BadInput(
                f"relay {self.name} has {len(self.sites):,} sites, and the limit is {MOST_SITES:,}; use several"
            )

    def may_carry(self, feed: str) -> bool:
        """True if the relay may fan out the feed."""
        return self.fan_out is not None and ("*" in self.feeds or feed in self.feeds)


def check_relay_address(text: str) -> str:
    """HOST:PORT, an IPv6 address in brackets; refuses anything else."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not 1 <= int(found["port"]) <= 65_535:
        raise BadInput(
            f"{text[:80]!r} is not the address of a relay; write HOST:PORT, for example relay.example.edu:7379"
        )
    return text


def chains_of(site: str, relays: Iterable[Relay]) -> tuple[tuple[str, ...], ...]:
    """The chains of splicing relays from a site to the hub, nearest relay first; shorter chains come first."""
    above = _above(relay for relay in relays if relay.address is not None)
    found: list[tuple[str, ...]] = [(name,) for name in above.get(site, ())]
    # Chains are added to the list while it is read: each one grows by the relays of its last relay.
    for chain in found:
        if len(chain) < MOST_OF_CHAIN:
            found += [(*chain, name) for name in above.get(chain[-1], ()) if name not in chain]
        if len(found) >= MOST_CHAINS:
            break
    return tuple(found[:MOST_CHAINS])


def check_no_circle(relay: Relay, others: Iterable[Relay]) -> None:
    """Refuses a relay that would be behind itself by way of others."""
    above = _above([relay, *(other for other in others if other.name != relay.name)])
    seen: list[str] = []
    waiting = list(above.get(relay.name, ()))
    while waiting:
        name = waiting.pop()
        if name == relay.name:
            raise BadInput(
                f"relay {relay.name} would be behind itself, by way of {', '.join(seen)}; "
                "leave out one of these from the sites of the other"
            )
        if name not in seen:
            seen.append(name)
            waiting += above.get(name, ())


def _above(relays: Iterable[Relay]) -> Mapping[str, list[str]]:
    """By site or relay, the relays directly on its way."""
    found: dict[str, list[str]] = {}
    for relay in sorted(relays, key=lambda one: one.name):
        for site in relay.sites:
            found.setdefault(site, []).append(relay.name)
    return found


_ADDRESS = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>[0-9]{1,5})", re.ASCII
)
MOST_SITES = 5_000
"""Sites behind one relay."""
MOST_CHAINS = 8
"""Chains that a site is given; the node reads no more."""
MOST_OF_CHAIN = 4
"""Relays of one chain."""
