"""Signs of a feed's arrivals, exact to the product: the end of a silence, and its beginning.

The scheduler names the silences that count; the node's reports let a circuit be ordered with the first product of a
train, and given back when a silence has lasted as long as the hold time.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SilencesWatched:
    """The scheduler wants signs of exactly these feeds; a feed that is left out is no longer watched."""

    holds_us: tuple[tuple[str, int], ...]
    """By feed, the silence that counts, in microseconds."""


@dataclass(frozen=True, slots=True)
class FeedStirred:
    """A product arrived after a silence of the hold time or longer, or as the first one that is watched."""

    feed: str
    at_us: int


@dataclass(frozen=True, slots=True)
class FeedSilent:
    """No product has arrived for the hold time."""

    feed: str
    since_us: int
    """The arrival of the last product."""
    at_us: int
    """The moment at which the hold time had passed."""


SilenceEvent = SilencesWatched | FeedStirred | FeedSilent
