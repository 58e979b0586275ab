"""Single products on their way to a site."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Transfer:
    """A product that had the connections of a session to itself."""

    bytes: int
    took_us: int
    """From its first byte at the hub to its last byte at the site; never 0."""

    @property
    def rate_bps(self) -> float:
        """Its rate, in bits per second."""
        return self.bytes * 8e6 / self.took_us
