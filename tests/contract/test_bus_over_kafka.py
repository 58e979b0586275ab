"""Effects that only brokers have on a bus: they are killed, hold foreign content, require passwords, and move."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from downburst.bus.local import BusSubscription
from downburst.domain.events import Event, EventsMissed, PinChanged, SitesChanged
from downburst.foundation.errors import DownburstError
from downburst.kafka.bus import KafkaBus
from downburst.settings.kafka import KafkaSettings
from kit.kafka import PASSWORD, USER, Kafka
from kit.patience import wait_for

pytestmark = pytest.mark.all


def settings(broker: Kafka, **given: Any) -> KafkaSettings:
    return KafkaSettings(**({"servers": broker.address, "prefix": f"hub-{next(NUMBERS)}"} | given))


async def test_a_broker_that_is_killed_and_started_again_loses_no_event(broker: Kafka) -> None:
    chosen = settings(broker)
    here, there = await KafkaBus(chosen).open(), await KafkaBus(chosen).open()
    seen, beside = there.subscribe(), here.subscribe()
    here.publish(PinChanged("before"))
    assert await heard(seen) == PinChanged("before")
    broker.kill()
    for number in range(50):
        here.publish(PinChanged(f"meanwhile {number}"))
    assert await heard(beside) == PinChanged("before")
    assert await heard(beside) == PinChanged("meanwhile 0"), "this process needs no broker"
    await asyncio.to_thread(broker.start)
    here.publish(PinChanged("after"))
    expected = [*(f"meanwhile {number}" for number in range(50)), "after"]
    assert [await heard(seen) for _ in expected] == [PinChanged(name) for name in expected]
    closed(here, there)


async def test_a_process_does_not_hear_itself_through_the_brokers(broker: Kafka) -> None:
    chosen = settings(broker)
    here, there = await KafkaBus(chosen).open(), await KafkaBus(chosen).open()
    seen, elsewhere = here.subscribe(), there.subscribe()
    here.publish(PinChanged("NGRID"))
    assert await heard(elsewhere) == PinChanged("NGRID")
    # The topic has one order: a return of the first event would come before the second.
    there.publish(SitesChanged())
    assert [await heard(seen), await heard(seen)] == [PinChanged("NGRID"), SitesChanged()]
    closed(here, there)


async def test_processes_that_begin_at_once_wait_for_topics_that_one_of_them_makes(broker: Kafka) -> None:
    for _ in range(3):
        chosen = settings(broker)
        closed(*await asyncio.gather(*(KafkaBus(chosen).open() for _ in range(6))))


async def test_what_could_not_be_delivered_is_told_as_a_loss(broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("downburst.kafka.bus.DELIVERY_MS", 1_000)
    chosen = settings(broker)
    here, there = await KafkaBus(chosen).open(), await KafkaBus(chosen).open()
    seen = there.subscribe(SitesChanged)
    broker.kill()
    for number in range(5):
        here.publish(PinChanged(str(number)))
    await asyncio.to_thread(wait_for, "five events to be given up", lambda: here._lost or here._saying_lost, 60)
    await asyncio.to_thread(broker.start)
    missed = 0
    while missed < 5:
        assert await heard(seen) == EventsMissed()
        missed += seen.take_dropped()
    assert missed == 5
    closed(here, there)


async def test_passwords_inside_tls(broker: Kafka, tmp_path: Path) -> None:
    bus = await KafkaBus(secured(broker, tmp_path)).open()
    seen = bus.subscribe()
    bus.publish(SitesChanged())
    assert await heard(seen) == SitesChanged()
    closed(bus)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"servers": "127.0.0.1:1"}, "can't be reached: nothing listens there; start it, or correct kafka.servers"),
        ({"servers": "no-such-host.invalid:9092"}, "has an unknown host name"),
        ({"security": "tls"}, "kafka.security"),
    ],
)
async def test_brokers_that_can_not_be_used_are_one_sentence(
    broker: Kafka, change: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downburst.kafka.cluster.ANSWER_S", 3.0)
    await refused(settings(broker, **change), sentence)


async def test_a_wrong_password_and_an_unknown_authority_are_one_sentence(
    broker: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downburst.kafka.cluster.ANSWER_S", 3.0)
    await refused(secured(broker, tmp_path, password="wrong"), "refused user or password; correct kafka.sasl_user")
    await refused(
        secured(broker, tmp_path, ca_file=None), "a certificate from an unknown authority; correct kafka.ca_file"
    )
    await refused(secured(broker, tmp_path, sasl_password_file=None), "kafka.sasl_password_file names no file")


async def test_topics_of_another_shape_are_refused(broker: Kafka) -> None:
    chosen = settings(broker)
    make(broker, NewTopic(f"{chosen.prefix}.events", num_partitions=3, replication_factor=1))
    await refused(chosen, f"the topic {chosen.prefix}.events has 3 partitions, and its records need one order")
    other = settings(broker)
    make(broker, NewTopic(f"{other.prefix}.plans", num_partitions=1, replication_factor=1))
    await refused(other, "has cleanup.policy delete, so plans would be forgotten; set it to compact")


async def test_foreign_content_is_passed_over_and_said(broker: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    chosen = settings(broker)
    bus = await KafkaBus(chosen).open()
    seen = bus.subscribe()
    producer = Producer({"bootstrap.servers": broker.address})
    for content in (b"hello", b"{}", b'{"kind":"PinChanged","schema":1,"event":{}}', b'{"lost":"x"}'):
        producer.produce(f"{chosen.prefix}.events", content)
    producer.produce(f"{chosen.prefix}.events", b'{"kind":"Unheard","schema":1,"event":{}}')
    producer.produce(f"{chosen.prefix}.events", b'{"kind":"PinChanged","schema":9,"event":{"feed":"X"}}')
    producer.produce(f"{chosen.prefix}.events", b'{"kind":"PinChanged","schema":1,"event":{"feed":"X","more":1}}')
    producer.flush(20)
    assert await heard(seen) == EventsMissed(), "of a newer schema"
    assert await heard(seen) == PinChanged("X")
    assert caplog.text.count("holds foreign content") == 4
    closed(bus)


async def refused(chosen: KafkaSettings, sentence: str) -> None:
    with pytest.raises(DownburstError) as error:
        await KafkaBus(chosen).open()
    assert sentence in error.value.sentence
    assert "\n" not in error.value.sentence


def secured(broker: Kafka, directory: Path, *, password: str = PASSWORD, **given: Any) -> KafkaSettings:
    file = directory / "password"
    file.write_text(password)
    usual: dict[str, Any] = {
        "servers": f"127.0.0.1:{broker.tls_port}",
        "security": "sasl-tls",
        "sasl_mechanism": "PLAIN",
    }
    usual |= {"sasl_user": USER, "sasl_password_file": file, "ca_file": broker.ca_file}
    return settings(broker, **(usual | given))


def make(broker: Kafka, topic: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([topic]).values():
        future.result(20)


async def heard(subscription: BusSubscription) -> Event | None:
    async with asyncio.timeout(90):
        return await subscription.next()


def closed(*buses: KafkaBus) -> None:
    for bus in buses:
        bus.close()


NUMBERS = count(1)
