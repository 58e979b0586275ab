"""The client of Kafka: `python -m bench.peers.kafka.client produce|consume ADDRESS MESSAGES BYTES`, on librdkafka."""

import importlib
import json
import sys
import time
from typing import Any

from bench.peers.tools import PEERS

TOPIC = "fan-out"


def produce(address: str, messages: int, size_bytes: int) -> None:
    """Put as many messages into the topic, each acknowledged by the broker."""
    kafka = _client()
    producer = kafka.Producer({"bootstrap.servers": address, "linger.ms": 20, "acks": "all"})
    payload = bytes(size_bytes)
    for _ in range(messages):
        while True:
            try:
                producer.produce(TOPIC, payload, partition=0)
                break
            except BufferError:
                producer.poll(0.05)
    if left := producer.flush(PATIENCE_S):
        raise SystemExit(f"the broker did not acknowledge {left} messages")


def consume(address: str, messages: int) -> None:
    """Say 'ready', wait for the word, read the topic from its beginning, and print an account."""
    kafka = _client()
    # Assigned manually: the time that a group takes to form is no part of a fan-out.
    consumer = kafka.Consumer(
        {"bootstrap.servers": address, "group.id": f"measured-{time.time_ns()}", "enable.auto.commit": False}
    )
    print("ready", flush=True)
    sys.stdin.readline()
    began_us, got, got_bytes = time.time_ns() / 1000, 0, 0
    consumer.assign([kafka.TopicPartition(TOPIC, 0, kafka.OFFSET_BEGINNING)])
    give_up_s = time.monotonic() + PATIENCE_S
    while got < messages and time.monotonic() < give_up_s:
        batch = consumer.consume(BATCH_MESSAGES, timeout=1.0)
        good = [message.value() for message in batch if message.error() is None]
        got += len(good)
        got_bytes += sum(map(len, good))
    ended_us = time.time_ns() / 1000
    print(json.dumps({"began_us": began_us, "ended_us": ended_us, "messages": got, "bytes": got_bytes}), flush=True)
    consumer.close()


def _client() -> Any:
    """The module at the path of `install_kafka`: it is no dependency of the product."""
    sys.path.insert(0, str(PEERS / "python"))
    return importlib.import_module("confluent_kafka")


BATCH_MESSAGES = 10_000
PATIENCE_S = 120.0

if __name__ == "__main__":
    role, broker, count, product_bytes = sys.argv[1:]
    if role == "produce":
        produce(broker, int(count), int(product_bytes))
    else:
        consume(broker, int(count))
