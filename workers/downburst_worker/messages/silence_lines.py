"""The lines about silences of feeds, from and to the types of the model."""

from typing import Any

from downburst.domain.ordering.signs import FeedSilent, FeedStirred, SilencesWatched
from downburst.foundation.bounds import OutOfBounds, clock_us, feed_name

Line = dict[str, Any]


def silences_job(watched: SilencesWatched) -> Line:
    """The job with the whole set of feeds whose silences are reported."""
    return {"feeds": [{"feed": feed, "hold_us": hold_us} for feed, hold_us in watched.holds_us]}


def feed_stirred(line: Line) -> FeedStirred:
    """The report that a product ended a silence."""
    return FeedStirred(feed_name(line["feed"]), clock_us(line["arrived_us"]))


def feed_silent(line: Line) -> FeedSilent:
    """The report that no product has arrived for the hold time."""
    since_us, until_us = clock_us(line["since_us"]), clock_us(line["until_us"])
    if until_us < since_us:
        raise OutOfBounds(f"a silence that ends at {until_us} can't begin at {since_us}")
    return FeedSilent(feed_name(line["feed"]), since_us, until_us)
