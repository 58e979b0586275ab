"""What a Global Replay service is asked, and its answers; pure.

The service is one of OGC API Features over the notifications of the last 24 hours (wmo-im/wis2-grep). Each feature is
a notification as it was published, with its topic as a property more. `datetime` selects by `pubtime`, `q` with a
quoted begin of a topic by topic, `sortby=pubtime` puts the oldest first. The service's index pages 10,000 features
deep at most, so a walk goes on from the last publication time that it has seen.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from downburst.foundation.errors import BadInput


@dataclass(frozen=True, slots=True)
class Replayed:
    """A notification in an answer."""

    topic: str
    payload: bytes
    """The notification, written anew without the topic."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    notifications: tuple[Replayed, ...]
    features: int
    """Those that are no notifications count too."""
    times: tuple[datetime, ...]
    """The publication times that can be read, in the service's order."""
    matched: int | None
    """The number of all features that fit the question; None: the service does not state it."""
    has_next: bool


class Walk:
    """The pages of one time and one begin of topics."""

    def __init__(self, prefix: str, begin: datetime, end: datetime) -> None:
        self._prefix, self._begin, self._end = prefix, begin, end
        self._offset = 0
        self.is_over = False

    @property
    def parameters(self) -> dict[str, str]:
        """Those of the next page."""
        found = {
            "f": "json",
            "datetime": f"{_second(self._begin)}/{_second(self._end + timedelta(seconds=1))}",
            "sortby": "pubtime",
            "limit": str(FEATURES_OF_PAGE),
        }
        found |= {"q": f'"{self._prefix}"'} if self._prefix else {}
        return found | ({"offset": str(self._offset)} if self._offset else {})

    def take(self, page: Page) -> None:
        """Moves behind a page. One that is not sorted is followed by number alone."""
        end = self._offset + page.features
        more = page.matched > end if page.matched is not None else page.has_next
        self.is_over = page.features == 0 or not more
        last = page.times[-1] if page.times and list(page.times) == sorted(page.times) else None
        if last is not None and last.replace(microsecond=0) > self._begin:
            self._begin, self._offset = last.replace(microsecond=0), 0
        else:
            self._offset = end


def items_url(replay_url: str) -> str:
    """The address of the notifications; that of the service, or of the collection, may be given."""
    base = replay_url.rstrip("/").removesuffix("/items")
    return f"{base}/items" if base.endswith(COLLECTION) else f"{base}{COLLECTION}/items"


def prefixes_of(filters: Iterable[str]) -> list[str]:
    """The begins of topics that cover some filters; one that is empty stands for all topics."""
    found = sorted({_prefix(one) for one in filters})
    least = [one for one in found if not any(_covers(other, one) for other in found if other != one)]
    return least if len(least) <= MOST_PREFIXES else [""]


def fits(topic: str, filters: Iterable[str]) -> bool:
    """True if a topic is one of some filters with wildcards."""
    return any(_fits(topic.split("/"), one.split("/")) for one in filters)


def read_page(document: bytes) -> Page:
    """An answer; refuses one that is no collection of features with one sentence."""
    try:
        answer = json.loads(document)
    except (ValueError, RecursionError):
        raise BadInput("the replay service answers with something other than JSON") from None
    features = answer.get("features") if isinstance(answer, Mapping) else None
    if not isinstance(features, list):
        raise BadInput("the replay service answers with no list of features")
    found = [one for one in features if isinstance(one, Mapping)]
    matched, links = answer.get("numberMatched"), answer.get("links")
    return Page(
        tuple(one for one in map(_replayed, found) if one is not None),
        len(features),
        tuple(at for at in map(_published_at, found) if at is not None),
        matched if isinstance(matched, int) and not isinstance(matched, bool) else None,
        isinstance(links, list) and any(isinstance(one, Mapping) and one.get("rel") == "next" for one in links),
    )


def _replayed(feature: Mapping[str, Any]) -> Replayed | None:
    properties = feature.get("properties")
    topic = properties.get("topic") if isinstance(properties, Mapping) else None
    if not isinstance(topic, str) or not isinstance(properties, Mapping):
        return None
    stated = {name: value for name, value in properties.items() if name != "topic"}
    try:
        text = json.dumps({**feature, "properties": stated}, ensure_ascii=False, separators=(",", ":"))
        return Replayed(topic, text.encode())
    except (ValueError, RecursionError):
        return None


def _published_at(feature: Mapping[str, Any]) -> datetime | None:
    try:
        found = datetime.fromisoformat(feature["properties"]["pubtime"])
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _prefix(wanted: str) -> str:
    levels = wanted.split("/")
    return "/".join(itertools.takewhile(lambda level: level not in {"+", "#"}, levels))


def _covers(prefix: str, other: str) -> bool:
    return not prefix or other.startswith(f"{prefix}/")


def _fits(topic: list[str], wanted: list[str]) -> bool:
    for number, level in enumerate(wanted):
        if level == "#":
            return True
        if number >= len(topic) or level not in {"+", topic[number]}:
            return False
    return len(topic) == len(wanted)


def _second(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


COLLECTION = "/collections/wis2-notification-messages"
FEATURES_OF_PAGE = 500
"""The reference implementation's usual page; a service may give fewer."""
MOST_PREFIXES = 10
