"""Notifications from brokers into the ledger: judged and stored in one transaction, and acknowledged after it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache, partial

from downburst.domain.bridges import CentreDay, Last, Notice, PassedOver, State, Wis2Source
from downburst.foundation.errors import BadInput
from downburst.ledger import Transaction
from downburst.supervision import attempt_now
from downburst.wis2.notifications import Notification, read_notification
from downburst.wis2.topics import Policy, Topic, read_topic
from downburst_bridges.verdicts import SourceRules, Verdict, judged


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of a broker."""

    broker: str
    topic: str
    payload: bytes
    at: datetime


@dataclass(slots=True)
class Taken:
    """The outcome of some messages, for which they may be acknowledged once the transaction has ended."""

    notices: list[Notice] = field(default_factory=list)
    """To be fetched."""
    others: list[Notice] = field(default_factory=list)
    """Stored as well, and nothing to be fetched: they may take the place of earlier ones that are."""
    passed_over: list[PassedOver] = field(default_factory=list)
    readable: list[tuple[str, datetime]] = field(default_factory=list)
    """The brokers and publication times of notifications."""


@lru_cache(maxsize=1_000)
def topic_of(text: str) -> Topic:
    """As `read_topic`; most notifications come on few topics."""
    return read_topic(text)


@lru_cache(maxsize=1_000)
def notification_of(payload: bytes) -> Notification:
    """As `read_notification`: its download, and copies by other brokers, need it again soon after the intake."""
    return read_notification(payload)


def take(tx: Transaction, source: Wis2Source, heard: Sequence[Heard]) -> Taken:
    """Judges messages in their order, and stores what is to be fetched.

    A message that can't be read is passed over, and hurts no other one. So is one of a centre that this hub has
    published for: its products are here already.
    """
    return _Intake(tx, source).take(heard)


def release(tx: Transaction, source: Wis2Source) -> int:
    """Has those that wait fetched as far as their centres have bytes left today; returns their number."""
    today = tx.clock.now().astimezone(UTC).date()
    limits = SourceRules(bytes_per_day=source.bytes_per_day)
    used_bytes = {day.centre: day.bytes for day in tx.wis2.days.of(source.name, today)}
    released = 0
    for one in tx.wis2.notices.unsettled(source.name):
        if one.waiting:
            left_bytes = _left_bytes(limits.limit_bytes(one.centre), used_bytes.get(one.centre, 0))
            released += _release_of(tx, source.name, one.centre, today, left_bytes)
    return released


def _left_bytes(limit_bytes: int | None, used_bytes: int) -> float:
    return math.inf if limit_bytes is None else limit_bytes - used_bytes


def _release_of(tx: Transaction, source: str, centre: str, today: date, left_bytes: float) -> int:
    """A product that is larger than the rest of the day lets smaller ones pass."""
    day = CentreDay(source, centre, today)
    for notice in tx.wis2.notices.waiting(source, centre) if left_bytes > 0 else ():
        if day.bytes + notice.announced_bytes <= left_bytes:
            tx.wis2.notices.release(notice)
            day = replace(day, products=day.products + 1, bytes=day.bytes + notice.announced_bytes)
    tx.wis2.days.add([day] if day.products else [])
    return day.products


@dataclass(frozen=True, slots=True)
class _Readable:
    heard: Heard
    topic: Topic
    notification: Notification


class _Intake:
    """The messages of one transaction."""

    def __init__(self, tx: Transaction, source: Wis2Source) -> None:
        self._tx, self._source, self._taken = tx, source, Taken()
        self._today = tx.clock.now().astimezone(UTC).date()
        policies = frozenset(Policy) if source.takes_recommended else frozenset({Policy.CORE})
        self._rules = SourceRules(tx.wis2.publishers.centres(), policies, source.bytes_per_day)
        self._used_bytes = Counter({day.centre: day.bytes for day in tx.wis2.days.of(source.name, self._today)})
        self._counts: dict[str, Counter[str]] = {}
        """By centre, for its account of the day."""

    def take(self, heard: Sequence[Heard]) -> Taken:
        readable = [one for one in map(self._read, heard) if one is not None]
        last = self._tx.wis2.notices.last(self._source.name, (one.notification.data_id for one in readable))
        stored: dict[str, Notice] = {}
        for one in readable:
            data_id = one.notification.data_id
            notice = self._judge(one, last.get(data_id))
            if notice is not None:
                stored[data_id], last[data_id] = notice, notice.last
        self._taken.readable = [(one.heard.broker, one.notification.published_at) for one in readable]
        self._tx.wis2.notices.take(stored.values())
        source, today = self._source.name, self._today
        self._tx.wis2.days.add(CentreDay(source, centre, today, **more) for centre, more in self._counts.items())
        for notice in stored.values():
            (self._taken.notices if notice.last.state is State.COMING else self._taken.others).append(notice)
        return self._taken

    def _read(self, heard: Heard) -> _Readable | None:
        """A message that an error of this program can't read is passed over too, as it would come for ever."""
        topic: Topic | None = None
        try:
            topic = topic_of(heard.topic)
            found = attempt_now("bridges.read", partial(notification_of, heard.payload), what=heard.topic)
            sentence = "an error of this hub: its faults have it"
        except BadInput as error:
            found, sentence = None, str(error)
        if topic is not None and found is not None:
            return _Readable(heard, topic, found)
        self._pass_over(heard, Verdict.REFUSED, sentence, None if topic is None else topic.centre)
        return None

    def _judge(self, one: _Readable, last: Last | None) -> Notice | None:
        """The notification to store, if it takes the place of the last one."""
        topic, notification = one.topic, one.notification
        used_bytes = self._used_bytes[topic.centre]
        found = judged(topic, notification, last, self._rules, used_bytes=used_bytes)
        state = STATES.get(found.verdict)
        if state is None:
            self._pass_over(one.heard, found.verdict, found.sentence, topic.centre)
            return None
        announced_bytes = notification.link.length_bytes or 0
        if state is State.COMING:
            self._used_bytes[topic.centre] += announced_bytes
            self._count(topic.centre, products=1, bytes=announced_bytes)
        else:
            self._pass_over(one.heard, found.verdict, found.sentence, topic.centre)
        latest = Last(notification.id, notification.identity, notification.published_at, state)
        return Notice(
            self._source.name,
            notification.data_id,
            latest,
            topic.text,
            one.heard.payload,
            one.heard.at,
            topic.centre,
            announced_bytes,
            settled_at=one.heard.at if state is State.DELETED else None,
        )

    def _pass_over(self, heard: Heard, verdict: Verdict, sentence: str, centre: str | None) -> None:
        self._taken.passed_over.append(PassedOver(heard.at, heard.broker, heard.topic, verdict.value, sentence))
        if centre is None or verdict in {Verdict.DELETE, Verdict.WAIT}:
            return
        if verdict in {Verdict.COPY, Verdict.OLDER}:
            self._count(centre, copies=1)
        else:
            self._count(centre, refused=1)

    def _count(self, centre: str, **more: int) -> None:
        counts = self._counts.setdefault(centre, Counter())
        for name, count in more.items():
            counts[name] += count


STATES = {Verdict.TAKE: State.COMING, Verdict.WAIT: State.WAITING, Verdict.DELETE: State.DELETED}
"""The states of notifications that take the place of the last one of their data id."""
