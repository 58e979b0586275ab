"""The lines about repair between sites, from and to the types of the model."""

from collections.abc import Iterable
from typing import Any

from downburst.domain.relays.siblings import Saved, SiblingExchange
from downburst.foundation.bounds import SetAside, count, each, entries, feed_name, site_name

Line = dict[str, Any]


def with_siblings(job: Line, exchanges: Iterable[SiblingExchange]) -> Line:
    """The job with all sites, with the exchange of each site that takes part."""
    known = {one.site: one for one in exchanges}
    for line in job["sites"]:
        one = known.get(line["site"])
        line["siblings"] = None if one is None else _exchange(one)
    return job


def saved(line: Line, aside: list[SetAside]) -> tuple[Saved, ...]:
    """The products that siblings gave; an impossible entry goes to `aside`, and the others count."""
    return each(entries(line["saved"], most=MOST_SAVED), _saved, "products of siblings", aside)


def _exchange(one: SiblingExchange) -> Line:
    return {
        "address": one.address,
        "upload_bytes_per_second": one.upload_bytes_per_second,
        "upload_bytes_per_day": one.upload_bytes_per_day,
    }


def _saved(entry: Any) -> Saved:
    return Saved(
        site=site_name(entry["site"]),
        feed=feed_name(entry["feed"]),
        products=count(entry["products"]),
        bytes=count(entry["bytes"]),
    )


MOST_SAVED = 100_000
"""Sites and feeds of a hub in one line."""
