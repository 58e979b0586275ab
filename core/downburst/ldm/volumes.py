"""Volumes of feeds, to divide LDM's single queue among the logs of the feeds."""

from collections.abc import Mapping, Sequence

from downburst.ldm.feed_types import each_feed, parse_feed_type


def shares(queue_bytes: int, feeds: Sequence[str]) -> Mapping[str, int]:
    """Bytes of log for each feed: the queue by the feeds' usual volumes, and no log below `SMALLEST_LOG_BYTES`.

    The feeds of a queue share it in the same way, so each feed keeps about as many minutes as before.
    """
    all_volumes = sum(map(_volume, feeds))
    return {feed: max(int(queue_bytes * _volume(feed) / all_volumes), SMALLEST_LOG_BYTES) for feed in feeds}


def _volume(feed: str) -> float:
    """Megabytes an hour; a feed of several types has the sum of their volumes."""
    return sum(MEGABYTES_PER_HOUR.get(name, UNKNOWN_MEGABYTES_PER_HOUR) for name in each_feed(parse_feed_type(feed)))


SMALLEST_LOG_BYTES = 100_000_000

MEGABYTES_PER_HOUR: Mapping[str, float] = {
    "SATELLITE": 15_264,
    "NEXRAD2": 10_499,
    "NIMAGE": 8_157,
    "NGRID": 6_993,
    "GEM": 6_502,
    "HDS": 4_517,
    "FNEXRAD": 4_489,
    "NEXRAD3": 3_815,
    "EXP": 3_055,
    "CONDUIT": 2_500,
    "IDS": 34,
    "DDS": 17,
    "PPS": 17,
}
"""Published by a leading host of the IDD for April 2024. The text feeds share one figure; CONDUIT's is that of
earlier years, 60 GB a day."""

UNKNOWN_MEGABYTES_PER_HOUR = 100.0
"""For feeds without a known figure; all of those are small."""
