"""The way of a site to its hub: direct, or through a chain of relays."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from downburst.domain.relays.relay import MOST_OF_CHAIN, Relay
from downburst.foundation.errors import BadInput


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

    def __post_init__(self) -> None:
        if len(self.chain) > MOST_OF_CHAIN:
            raise BadInput(
                f"the way of {self.site} has {len(self.chain)} relays, and the limit is {MOST_OF_CHAIN}; "
                "choose a shorter one"
            )


def via_of(way: SiteWay, relays: Mapping[str, Relay]) -> list[str]:
    """The chains for the site, in the syntax of `--via`; a chain with a relay that is gone is left out."""
    addresses = [relays[name].address if name in relays else None for name in way.chain]
    known = [address for address in addresses if address is not None]
    return [",".join(known)] if known and len(known) == len(addresses) else []


def by_name(relays: Iterable[Relay]) -> dict[str, Relay]:
    """The relays by their names."""
    return {relay.name: relay for relay in relays}
