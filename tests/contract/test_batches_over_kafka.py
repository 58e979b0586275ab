"""Receipts by way of a real broker: each batch is counted once, whichever process dies in between."""

import asyncio
import json
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer

from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import BrokersAway
from downburst.kafka.batches import BatchReader, BatchSender
from downburst.ledger import Ledger
from downburst.settings.kafka import KafkaSettings
from downburst_latency.batch import parse_batch
from downburst_latency.service import LatencyService
from kit.kafka import Kafka
from kit.patience import wait_for

pytestmark = pytest.mark.all


@pytest.fixture
def chosen(broker: Kafka) -> KafkaSettings:
    return KafkaSettings(servers=broker.address, prefix=f"batches-{next(NUMBERS)}")


class Reader(BatchReader):
    """Records its last noted offset, and can skip the note."""

    def __init__(self, chosen: KafkaSettings, *, notes: bool) -> None:
        super().__init__(chosen)
        self._notes = notes
        self.noted: int | None = None

    def _note(self, last: "Message[bytes, bytes]") -> None:
        if self._notes:
            super()._note(last)
            self.noted = last.offset()


class Reading:
    """A latency service that reads, and can be stopped at any moment."""

    def __init__(self, chosen: KafkaSettings, ledger: Ledger, clock: FakeClock) -> None:
        self.chosen = chosen
        self.latency = LatencyService(ledger, clock=clock)
        self.said: list[object] = []
        self.loaded: list[object] = []

    async def until(self, batches: int, *, noted: int | None) -> None:
        """Reads this number of batches, and notes an offset; with `noted=None`, as if it was killed just before."""
        reader = Reader(self.chosen, notes=noted is not None)
        await reader.open()
        working = asyncio.create_task(reader.run(self._load, self._say))

        def enough() -> bool:
            return working.done() or len(self.loaded + self.said) >= batches

        await asyncio.to_thread(wait_for, f"{batches} batches", enough, 60)
        if working.done():
            working.result()
        await asyncio.to_thread(wait_for, "the note of where it is", lambda: reader.noted == noted, 60)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        reader.close()

    async def _load(self, text: str) -> None:
        self.loaded.append(await self.latency.load_text(text))

    async def _say(self, sentence: str, _next_step: str) -> None:
        self.said.append(sentence)


async def test_a_batch_that_comes_twice_is_counted_once(
    chosen: KafkaSettings, ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    sender = await BatchSender(chosen, check=parse_batch).open()
    for name in ("b1", "b2", "b1"):
        await sender.hand_over(batch(tmp_path, name))
    sender.close()
    reading = Reading(chosen, ledger, clock)
    await reading.until(3, noted=None)
    assert reading.loaded == [True, True, False]
    await reading.until(6, noted=2)
    assert reading.loaded[3:] == [False, False, False], "a reader that died before it noted where it was"
    assert [row.stored for row in await ledger.read(lambda tx: tx.measured.settled.all())] == [2]


async def test_a_reader_goes_on_where_the_one_before_noted(
    chosen: KafkaSettings, ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    sender = await BatchSender(chosen, check=parse_batch).open()
    await sender.hand_over(batch(tmp_path, "b1"))
    await Reading(chosen, ledger, clock).until(1, noted=0)
    await sender.hand_over(batch(tmp_path, "b2"))
    later = Reading(chosen, ledger, clock)
    await later.until(1, noted=1)
    assert later.loaded == [True]
    sender.close()


async def test_brokers_that_are_away_take_a_batch_later(
    chosen: KafkaSettings,
    broker: Kafka,
    ledger: Ledger,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("downburst.kafka.batches.HAND_OVER_MS", 2_000)
    sender = await BatchSender(chosen, check=parse_batch).open()
    await sender.hand_over(batch(tmp_path, "b1"))
    broker.kill()
    with pytest.raises(BrokersAway, match="does not accept receipts"):
        await sender.hand_over(batch(tmp_path, "b2"))
    await asyncio.to_thread(broker.start)
    while True:
        try:
            await sender.hand_over(batch(tmp_path, "b2"))
        except BrokersAway:
            continue
        break
    sender.close()
    reading = Reading(chosen, ledger, clock)
    await reading.until(2, noted=None)
    assert reading.loaded[:2] == [True, True]


async def test_what_is_no_batch_is_refused_at_one_end_and_passed_over_at_the_other(
    chosen: KafkaSettings, broker: Kafka, ledger: Ledger, clock: FakeClock, tmp_path: Path
) -> None:
    sender = await BatchSender(chosen, check=parse_batch).open()
    bad = tmp_path / "bad.json"
    bad.write_text('{"batch": "b1", "sket')
    with pytest.raises(ValueError, match="Unterminated"):
        await sender.hand_over(bad)
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(f"{chosen.prefix}.batches", b"hello")
    producer.flush(20)
    await sender.hand_over(batch(tmp_path, "b1"))
    sender.close()
    reading = Reading(chosen, ledger, clock)
    await reading.until(2, noted=1)
    assert reading.loaded == [True]
    assert f"offset 0 of topic {chosen.prefix}.batches can't be understood" in str(reading.said[0])


def batch(directory: Path, name: str) -> Path:
    report = {"feed": "NGRID", "epoch": "1", "site": "a", "settled_to": 4, "stored": 1, "stored_bytes": 40}
    report |= {"duplicates": 0, "rejected": 0, "expired": 0}
    path = directory / f"{name}.json"
    path.write_text(json.dumps({"batch": name, "sketches": [], "exceptions": [], "settled": [report]}))
    return path


NUMBERS = count(1)
