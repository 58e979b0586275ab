"""One stream of products to every site of a lab: the task of all contenders, and its measurements."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kit.namespaces import Lab


@dataclass(frozen=True)
class FanOut:
    """One run of one contender; every site got every product."""

    products: int
    product_bytes: int
    sites: int
    took_s: float
    """From the beginning to the last product of the last site."""
    cpu_s: float
    """User and system, of sender and receivers."""

    @property
    def products_per_s(self) -> float:
        """To each site."""
        return self.products / self.took_s

    @property
    def together_mbps(self) -> float:
        """10^6 product bytes per second, all sites together."""
        return self.products * self.product_bytes * self.sites / self.took_s / 1e6

    @property
    def cpu_us_per_delivery(self) -> float:
        """Processor time for one product at one site."""
        return self.cpu_s * 1e6 / (self.products * self.sites)


@dataclass(frozen=True)
class Stream:
    """The products to bring to the sites."""

    products: int
    product_bytes: int


class FanOutContender(Protocol):
    """A method that brings a stream to every site."""

    name: str

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Start everything afresh, do it once, stop everything."""
