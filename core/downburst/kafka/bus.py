"""The bus of several processes: an event published by one reaches the subscribers of all of them.

Subscribers of the same process get an event immediately, independent of the brokers; the others get it by the topic
of events, which each process reads from the moment it opened the bus. Events that could not be delivered or read are
reported to subscribers as a loss, and they read the ledger as after any loss.
"""

import asyncio
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from downburst.bus.local import BusSubscription, LocalBus
from downburst.domain.events import Event, PlanMade
from downburst.kafka.cluster import ANSWER_S, Cluster
from downburst.kafka.records import ForeignRecord, NewerSchema, decode, encode
from downburst.settings.kafka import KafkaSettings
from downburst.supervision import start_thread

if TYPE_CHECKING:
    from confluent_kafka import Message


class KafkaBus:
    """Opened in a running event loop, in which subscribers are notified."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._local = LocalBus()
        self._cluster = Cluster(settings)
        self._origin = uuid.uuid4().hex.encode()
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._lost = 0
        """Events that the brokers did not accept, not yet reported to others."""
        self._saying_lost = False
        self._listener: Callable[[Event], None] | None = None

    async def open(self) -> "KafkaBus":
        """Connects; receives all events published anywhere from then on. A failure is a one-sentence error."""
        self._loop = asyncio.get_running_loop()
        plans = await asyncio.to_thread(self._connect)
        for plan in plans:
            self._local.remember(plan)
        self._threads = [
            start_thread("kafka.events", self._listen),
            start_thread("kafka.deliveries", self._serve_deliveries),
        ]
        return self

    def publish(self, event: Event) -> None:
        """Notifies the subscribers of this process now, and those of others soon; never waits."""
        self._local.publish(event)
        record = encode(event)
        self._send(self._cluster.events.name, record)
        if isinstance(event, PlanMade):
            self._send(self._cluster.plans.name, record, key=event.plan.feed)

    def subscribe(self, *kinds: type[Event], limit: int = 1024) -> BusSubscription:
        """A queue of the given event types (all if none is given), of at most `limit` waiting events."""
        return self._local.subscribe(*kinds, limit=limit)

    def hear_others(self, listener: Callable[[Event], None]) -> None:
        """Calls `listener` with the events of other processes, in the order of the topic, before subscribers."""
        self._listener = listener

    def plans(self) -> list[PlanMade]:
        """The newest plan of every feed that was ever published, by feed."""
        return self._local.plans()

    def close(self) -> None:
        """Ends every subscription, after the brokers accepted the published events; waits briefly for that."""
        if self._closing.is_set():
            return
        self._local.close()
        if self._threads:
            self._producer.flush(CLOSE_S)
        self._closing.set()
        for thread in self._threads:
            thread.join(CLOSE_S)

    def _connect(self) -> list[PlanMade]:
        self._cluster.prepare()
        # Retries end before an event is too old to be useful; then it is reported as lost.
        options = self._cluster.options(
            acks="all", enable_idempotence=True, linger_ms=2, message_timeout_ms=DELIVERY_MS, compression_type="lz4"
        )
        self._producer = Producer(options | {"queue.buffering.max.messages": WAITING})
        self._consumer = Consumer(
            self._cluster.options(
                group_id=f"downburst-{self._origin.decode()}", enable_auto_commit=False, auto_offset_reset="error"
            )
        )
        try:
            plans = self._read_plans()
            self._begin_at_end()
        except KafkaException as error:
            raise self._cluster.explained(error) from error
        return plans

    def _read_plans(self) -> list[PlanMade]:
        place = TopicPartition(self._cluster.plans.name, 0)
        first, end = self._bounds(place)
        newest: dict[str, PlanMade] = {}
        if first < end:
            place.offset = first
            self._consumer.assign([place])
            # Compaction leaves gaps, so the position is checked, not the number of records.
            while self._consumer.position([place])[0].offset < end:
                message = self._consumer.poll(ANSWER_S)
                if message is None:
                    break
                event = self._event(message)
                if isinstance(event, PlanMade):
                    newest[event.plan.feed] = event
        return [newest[feed] for feed in sorted(newest)]

    def _begin_at_end(self) -> None:
        place = TopicPartition(self._cluster.events.name, 0)
        _, place.offset = self._bounds(place)
        self._consumer.assign([place])

    def _bounds(self, place: TopicPartition) -> tuple[int, int]:
        """First and next offset; a topic that was just created has no leader for a moment, and is queried again."""
        give_up_s = time.monotonic() + ANSWER_S
        while True:
            try:
                first, end = self._consumer.get_watermark_offsets(place, timeout=ANSWER_S)
            except KafkaException as error:
                if error.args[0].code() not in _SETTLING or time.monotonic() > give_up_s:
                    raise
                self._closing.wait(POLL_S)
            else:
                return first, end

    def _send(self, topic: str, record: bytes, *, key: str | None = None) -> None:
        headers: dict[str, str | bytes | None] = {"origin": self._origin}
        try:
            self._producer.produce(topic, record, key=key, headers=headers, on_delivery=self._delivered)
        except (BufferError, KafkaException):
            self._count_lost()

    def _delivered(self, error: KafkaError | None, _message: "Message") -> None:
        if error is not None:
            self._count_lost()

    def _count_lost(self, events: int = 1) -> None:
        with self._lock:
            self._lost += events

    def _serve_deliveries(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_S)
            self._say_what_was_lost()

    def _say_what_was_lost(self) -> None:
        """Reports losses, one record at a time; if the record itself is lost, the next one includes its count."""
        with self._lock:
            if not self._lost or self._saying_lost:
                return
            said, self._lost, self._saying_lost = self._lost, 0, True

        def delivered(error: KafkaError | None, _message: "Message") -> None:
            self._saying_lost = False
            if error is not None:
                self._count_lost(said)

        record = json.dumps({LOST: said}).encode()
        headers: dict[str, str | bytes | None] = {"origin": self._origin}
        try:
            self._producer.produce(self._cluster.events.name, record, headers=headers, on_delivery=delivered)
        except (BufferError, KafkaException):
            self._saying_lost = False
            self._count_lost(said)

    def _listen(self) -> None:
        while not self._closing.is_set():
            message = self._consumer.poll(POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is None:
                self._tell(message)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                # The brokers deleted events that this process had not read yet.
                self._miss(1)
                self._begin_again()
            else:
                _LOG.info("events of other processes: %s", error.str())
        self._consumer.close()

    def _begin_again(self) -> None:
        try:
            self._begin_at_end()
        except KafkaException as error:
            _LOG.warning("%s", self._cluster.explained(error).sentence)

    def _tell(self, message: "Message") -> None:
        if dict(message.headers() or []).get("origin") == self._origin:
            return
        if lost := _lost_in(message.value()):
            self._miss(lost)
            return
        event = self._event(message)
        if event is not None:
            self._in_loop(self._publish_here, event)

    def _publish_here(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)
        self._local.publish(event)

    def _event(self, message: "Message") -> Event | None:
        try:
            return decode(message.value() or b"")
        except NewerSchema as error:
            _LOG.info("passed over: %s", error)
            self._miss(1)
        except ForeignRecord as error:
            _LOG.warning(
                "the topic %s holds foreign content: %s; nothing else may write to it", message.topic(), error
            )
        return None

    def _miss(self, events: int) -> None:
        self._in_loop(self._local.miss, events)

    def _in_loop(self, work: Any, argument: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work, argument)


def _lost_in(record: bytes | None) -> int:
    """The number of events that a publisher reports as lost, if this is such a record."""
    if record is None or not record.startswith(b'{"' + LOST.encode()):
        return 0
    try:
        return int(json.loads(record)[LOST])
    except (ValueError, KeyError, TypeError):
        return 0


_LOG = logging.getLogger("downburst.kafka")
LOST = "lost"
WAITING = 10_000
DELIVERY_MS = 60_000
POLL_S = 0.2
CLOSE_S = 2.0
# The client itself raises the last two before it knows of a topic that another process created.
_SETTLING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)
