"""Batches of receipts over Kafka: sent by the hub, loaded into the ledger by the latency service.

A batch is handed over once the brokers have stored it; until then its file stays where the node wrote it. It may
arrive twice, after a crash on either side, and is loaded once by its id. A large one is sent in parts with ids of
their own, cut the same way each time, so that each part is loaded once as well.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from downburst.foundation.errors import BrokersAway, Failure
from downburst.kafka.cluster import Cluster
from downburst.settings.kafka import KafkaSettings
from downburst.supervision import FAULTS, start_thread

if TYPE_CHECKING:
    from confluent_kafka import Message


class BatchSender:
    """The hub's side; open it in a running event loop."""

    def __init__(self, settings: KafkaSettings, *, check: Callable[[str], object]) -> None:
        self._cluster = Cluster(settings)
        self._servers = settings.servers
        self._check = check
        self._closing = threading.Event()

    async def open(self) -> "BatchSender":
        """Connects; a failure is a one-sentence error."""
        await asyncio.to_thread(self._cluster.prepare)
        self._loop = asyncio.get_running_loop()
        self._producer = Producer(
            self._cluster.options(
                acks="all",
                enable_idempotence=True,
                linger_ms=2,
                message_timeout_ms=HAND_OVER_MS,
                compression_type="lz4",
            )
        )
        self._thread = start_thread("kafka.batches", self._serve)
        return self

    async def hand_over(self, path: Path) -> None:
        """Returns once the brokers have the batch; raises ValueError for a bad file, `BrokersAway` for a retry."""
        text = await asyncio.to_thread(path.read_text, encoding="utf-8")
        self._check(text)
        taken = [self._send(part_id, record) for part_id, record in parts_of(text)]
        failed = [error for error in await asyncio.gather(*taken) if error is not None]
        if failed:
            raise BrokersAway(f"Kafka at {self._servers} does not accept receipts: {failed[0].str()}; start it again")

    def close(self) -> None:
        """Disconnects; batches that the brokers did not accept are sent again at the next start."""
        self._closing.set()
        self._thread.join(POLL_S * 4)

    def _send(self, part_id: str, record: bytes) -> "asyncio.Future[KafkaError | None]":
        answer: asyncio.Future[KafkaError | None] = self._loop.create_future()

        def delivered(error: KafkaError | None, _message: "Message") -> None:
            self._loop.call_soon_threadsafe(_answer, answer, error)

        try:
            self._producer.produce(self._cluster.batches.name, record, key=part_id, on_delivery=delivered)
        except (BufferError, KafkaException):
            answer.set_result(KafkaError(KafkaError._QUEUE_FULL))
        return answer

    def _serve(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_S)


class BatchReader:
    """The latency service's side: every batch in order, from the position of the last reader."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._cluster = Cluster(settings)
        self._group = f"{settings.prefix}.ledger"

    async def open(self) -> "BatchReader":
        """Connects; a failure is a one-sentence error."""
        await asyncio.to_thread(self._cluster.prepare)
        # One reader holds the role in the ledger, so the brokers need not elect one.
        self._consumer = Consumer(
            self._cluster.options(
                group_id=self._group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                coordinator_query_interval_ms=COORDINATOR_AGAIN_MS,
            )
        )
        return self

    async def run(self, load: Callable[[str], Awaitable[object]], say: Callable[[str, str], Awaitable[None]]) -> None:
        """Loads batches until cancelled; an invalid one is reported, and stays in the topic."""
        self._consumer.assign([await self._place()])
        while True:
            messages = await asyncio.to_thread(self._consumer.consume, AT_ONCE, POLL_S)
            read = [message for message in messages if self._is_record(message)]
            for message in read:
                await self._bring_in(message, load, say)
            if read:
                await asyncio.to_thread(self._note, read[-1])

    def close(self) -> None:
        """Disconnects."""
        self._consumer.close()

    async def _place(self) -> TopicPartition:
        """The position of the last reader, queried until the brokers return it.

        The library would query it only once: a broker that has just started, and answers that it does not (yet)
        coordinate the group, would leave the reader waiting forever (librdkafka, issue 5586).
        """
        wanted = TopicPartition(self._cluster.batches.name, 0)
        while True:
            try:
                (place,) = await asyncio.to_thread(self._consumer.committed, [wanted], COORDINATOR_AGAIN_MS / 1_000)
            except KafkaException as error:
                reason = error.args[0]
            else:
                if place.error is None:
                    wanted.offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
                    return wanted
                reason = place.error
            _LOG.info("the place of receipts on Kafka is not known yet: %s", reason)
            await asyncio.sleep(AGAIN_S)

    async def _bring_in(
        self,
        message: "Message",
        load: Callable[[str], Awaitable[object]],
        say: Callable[[str, str], Awaitable[None]],
    ) -> None:
        while True:
            try:
                await load((message.value() or b"").decode())
            except Failure as error:
                # The hub can't do it now: the batch itself is not at fault.
                _LOG.info("a batch of receipts waits: %s", error.sentence)
                await asyncio.sleep(AGAIN_S)
                continue
            except Exception as error:  # noqa: BLE001
                where = f"a batch of receipts at offset {message.offset()} of topic {message.topic()}"
                FAULTS.caught("kafka.batch", error, where)
                await say(f"{where} can't be understood ({error}); it was skipped", "")
            return

    def _is_record(self, message: "Message") -> bool:
        error = message.error()
        if error is not None:
            _LOG.info("receipts from Kafka: %s", error.str())
        return error is None

    def _note(self, last: "Message") -> None:
        """Commits the position. If that fails some batches arrive twice, which changes nothing."""
        with suppress(KafkaException):
            self._consumer.commit(message=last, asynchronous=False)


def parts_of(text: str) -> Iterator[tuple[str, bytes]]:
    """Splits a batch into records within the brokers' default limit: ids and contents."""
    if len(text) <= PART_BYTES:
        yield json.loads(text)["batch"], text.encode()
        return
    batch = json.loads(text)
    others = {name: value for name, value in batch.items() if name not in _LISTS}
    part: dict[str, list[Any]] = {name: [] for name in _LISTS}
    number, held = 0, 0
    for name in _LISTS:
        for row in batch[name]:
            size = len(json.dumps(row))
            if held and held + size > PART_BYTES:
                yield _part(others, part, number)
                part, number, held = {one: [] for one in _LISTS}, number + 1, 0
            part[name].append(row)
            held += size
    yield _part(others, part, number)


def _part(others: dict[str, Any], part: dict[str, list[Any]], number: int) -> tuple[str, bytes]:
    part_id = f"{others['batch']}.{number}"
    return part_id, json.dumps(others | part | {"batch": part_id}, separators=(",", ":")).encode()


def _answer(future: "asyncio.Future[KafkaError | None]", error: KafkaError | None) -> None:
    if not future.done():
        future.set_result(error)


_LOG = logging.getLogger("downburst.kafka")
_LISTS = ("sketches", "exceptions", "settled")
PART_BYTES = 400_000
"""Brokers accept a megabyte by default."""
HAND_OVER_MS = 10_000
COORDINATOR_AGAIN_MS = 2_000
"""New brokers first create the topic of group offsets; the library would query again minutes later."""
AT_ONCE = 100
POLL_S = 0.2
AGAIN_S = 1.0
