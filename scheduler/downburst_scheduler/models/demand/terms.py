"""The terms under which circuits are ordered for one feed and site."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemandTerms:
    """Rate, set-up and hold time of the orders for one site."""

    site: str
    offer: str
    rate_bps: int
    """In frames; one of the offer's steps."""
    setup_s: float
    hold_s: float
    """The silence after which the circuit is given back."""
    ahead: bool = False
    """True if circuits are ordered ahead of the trains that the feed's habit predicts."""
