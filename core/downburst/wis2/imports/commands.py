"""Command lines for a hub, as they are typed."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime

from downburst.domain.bridges.datasets import Dataset
from downburst.domain.bridges.publishers import Wis2Publisher
from downburst.domain.bridges.sources import Wis2Source
from downburst.wis2.imports.brokers import StatedBroker


def feed_command(feed: str) -> str:
    """Creates a feed that keeps its products as long as WIS2 asks."""
    return shlex.join(["downburst", "feeds", "add", feed, "--retention-hours", str(RETENTION_HOURS)])


def bridge_command(source: Wis2Source, broker: StatedBroker) -> str:
    """Adds a source; the user of one of its brokers is that of all."""
    words = ["downburst", "bridges", "add", source.name, "--feed", source.feed]
    for one in source.brokers:
        words += ["--broker", one.url]
    for topic in source.filters:
        words += ["--topic", topic]
    words += broker.options()
    return shlex.join([*words, *(["--recommended"] if source.takes_recommended else [])])


def publisher_command(publisher: Wis2Publisher, broker: StatedBroker) -> str:
    """Adds a publisher, which is off."""
    words = ["downburst", "publishers", "add", publisher.name, "--feed", publisher.feed]
    words += ["--centre", publisher.centre, "--topic", publisher.subtopic, "--metadata-id", publisher.metadata_id]
    words += ["--broker", publisher.broker.url, *broker.options(mqtt=False), "--base-url", publisher.base_url]
    words += ["--pattern", publisher.pattern] if publisher.pattern != ALL else []
    words += ["--media-type", publisher.media_type] if publisher.media_type != BYTES else []
    return shlex.join(words)


def describe_command(publisher: str, dataset: Dataset) -> str:
    """States the facts of a publisher's dataset."""
    words = ["downburst", "publishers", "describe", publisher, "--title", dataset.title]
    words += ["--description", dataset.description, "--organization", dataset.organization]
    words += ["--email", dataset.email, "--website", dataset.website, "--country", dataset.country]
    for keyword in dataset.keywords:
        words += ["--keyword", keyword]
    words += ["--begin", instant(dataset.begin)]
    words += ["--bounds", *_numbers(dataset.bounds)] if dataset.bounds is not None else []
    words += ["--license", dataset.license_url] if dataset.license_url is not None else []
    return shlex.join(words)


def instant(at: datetime) -> str:
    """A time as the command line and the API take it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _numbers(bounds: Sequence[float]) -> list[str]:
    return [f"{one:.10g}" for one in bounds]


RETENTION_HOURS = 24
"""The duty of a WIS2 node (guide to WIS2, 1.3.3)."""
ALL = ".*"
BYTES = "application/octet-stream"
