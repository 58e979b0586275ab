"""The node's answers about its logs."""

from typing import Any

from downburst.domain.feeds import FeedLog
from downburst.foundation.bounds import count, feed_name, maybe


def feed_logs(answer: dict[str, Any]) -> list[FeedLog]:
    """The contents of each feed's log."""
    return [
        FeedLog(
            feed=feed_name(line["feed"]),
            products=count(line["products"]),
            bytes=count(line["bytes"]),
            limit_bytes=count(line["ceiling_bytes"]),
            oldest_us=maybe(line["oldest_stored_us"], count),
        )
        for line in answer["feeds"]
    ]
