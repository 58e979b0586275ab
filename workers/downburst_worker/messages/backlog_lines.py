"""The node's lines about sites' backlogs, and sites' positions for a node that starts."""

from collections.abc import Iterable
from typing import Any

from downburst.domain.backlog import FeedBacklog
from downburst.domain.events import BacklogSeen, SiteBacklog
from downburst.domain.receipts import Settled
from downburst.foundation.bounds import SetAside, clock_us, count, each, entries, feed_name, flag, maybe, site_name

Line = dict[str, Any]


def backlog_seen(line: Line, aside: list[SetAside], *, sender: str = "") -> BacklogSeen:
    """Sites' backlogs; an impossible entry goes to `aside`, and the others count."""
    sites = each(entries(line.get("sites", []), most=MOST_SITES), _site, "a site's backlog", aside)
    return BacklogSeen(sites, sender)


def with_positions(job: Line, stood: Iterable[Settled]) -> Line:
    """The job with the whole set of sites and the position of each."""
    by_site: dict[str, list[Line]] = {}
    for one in stood:
        told = {"feed": one.feed, "epoch": one.epoch, "settled_to": one.settled_to}
        by_site.setdefault(one.site, []).append(told)
    return job | {"sites": [site | {"positions": by_site.get(site["site"], [])} for site in job["sites"]]}


def _site(line: Line) -> SiteBacklog:
    return SiteBacklog(site_name(line["site"]), tuple(map(_feed, entries(line["feeds"], most=MOST_FEEDS))))


def _feed(line: Any) -> FeedBacklog:
    return FeedBacklog(
        feed=feed_name(line["feed"]),
        known=flag(line["known"]),
        products=count(line["products"]),
        bytes=count(line["bytes"]),
        oldest_us=maybe(line.get("oldest_us"), clock_us),
        lost_products=count(line["lost_products"]),
        lost_bytes=count(line["lost_bytes"]),
        counting=flag(line["counting"]),
    )


MOST_SITES = 100_000
MOST_FEEDS = 4_096
