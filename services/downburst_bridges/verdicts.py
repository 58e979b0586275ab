"""The verdict on each notification of a WIS2 source: take it, or pass it over for a reason; pure.

The rules are those of the guide to WIS2 (1.2.2, 1.2.3, 2.7.4.2) and of the tests for Global Services: a notification
comes once by id, and a product once by data id with its digest. An update has a newer publication time. After a
failure the next notification of the same data id gets its turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from downburst.domain.bridges import Last, State
from downburst.wis2.notifications import Kind, Notification
from downburst.wis2.topics import Policy, Topic


class Verdict(StrEnum):
    """The fate of a notification."""

    TAKE = "take"
    WAIT = "wait"
    """Its centre has used up its bytes of the day."""
    DELETE = "delete"
    """The centre withdraws the data; the product stays, as sites have it, and the event is recorded."""
    COPY = "copy"
    """Another broker's copy, or the same bytes under another id."""
    OLDER = "older"
    REPEAT = "repeat"
    """Other bytes under a known data id, and not marked as an update."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict with its reason."""

    verdict: Verdict
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class SourceRules:
    """The limits of a source."""

    own_centres: frozenset[str] = frozenset()
    """Centres that this hub publishes for, and gateways that it feeds: their notifications would come round."""
    policies: frozenset[Policy] = frozenset({Policy.CORE})
    bytes_per_day: int | None = None
    """For each centre that has no limit of its own; None: no limit."""
    bytes_per_day_of: Mapping[str, int] = field(default_factory=dict)
    """By centre."""

    def limit_bytes(self, centre: str) -> int | None:
        """The bytes that a centre may send in a day."""
        return self.bytes_per_day_of.get(centre, self.bytes_per_day)


def judged(
    topic: Topic, notification: Notification, last: Last | None, rules: SourceRules, *, used_bytes: int
) -> Judged:
    """The verdict on a notification; `used_bytes` are those of its centre since the day began."""
    return (
        _loop(topic, rules)
        or _rights(topic, rules)
        or _copy(notification, last)
        or _withdrawn(notification, last)
        or _order(notification, last)
        or _budget(topic, notification, rules, used_bytes)
        or Judged(Verdict.TAKE)
    )


def _loop(topic: Topic, rules: SourceRules) -> Judged | None:
    if topic.centre not in rules.own_centres:
        return None
    return Judged(
        Verdict.REFUSED, f"it is of {topic.centre}, for which this hub publishes: it would come round again"
    )


def _rights(topic: Topic, rules: SourceRules) -> Judged | None:
    if topic.policy is None:
        return Judged(Verdict.REFUSED, f"{topic.text} is no topic of data")
    if topic.policy in rules.policies:
        return None
    return Judged(Verdict.REFUSED, f"it is {topic.policy} data, which this source does not take")


def _copy(notification: Notification, last: Last | None) -> Judged | None:
    if last is None or last.state is State.FAILED:
        return None
    if notification.id == last.id:
        return Judged(Verdict.COPY, "this notification came before")
    same = notification.kind is not Kind.DELETION and notification.identity == last.identity
    if same and last.state is not State.DELETED:
        return Judged(Verdict.COPY, "these bytes came before, by another notification")
    return None


def _withdrawn(notification: Notification, last: Last | None) -> Judged | None:
    if notification.kind is not Kind.DELETION:
        return None
    if last is not None and notification.published_at < last.published_at:
        return Judged(Verdict.OLDER, "a newer notification of this data id came before")
    return Judged(Verdict.DELETE, "the centre withdraws the data")


def _order(notification: Notification, last: Last | None) -> Judged | None:
    if last is None or last.state is State.FAILED:
        return None
    if notification.published_at <= last.published_at:
        return Judged(Verdict.OLDER, "a notification of this data id with the same or a newer pubtime came before")
    if notification.kind is not Kind.UPDATE and last.state is not State.DELETED:
        return Judged(Verdict.REPEAT, "this data id came before with other bytes, and the link is no update")
    return None


def _budget(topic: Topic, notification: Notification, rules: SourceRules, used_bytes: int) -> Judged | None:
    limit_bytes = rules.limit_bytes(topic.centre)
    more_bytes = notification.link.length_bytes or 0
    if limit_bytes is None or used_bytes + more_bytes <= limit_bytes:
        return None
    sentence = (
        f"{topic.centre} would exceed its {limit_bytes / 1e9:.3g} GB a day: the product waits for a later day; raise "
        "the limit, or narrow the topics"
    )
    return Judged(Verdict.WAIT, sentence)
