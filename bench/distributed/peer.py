"""The broker alone: `python -m bench.distributed.peer topic|produce|consume ADDRESS TOPIC MESSAGES BYTES`."""

import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic


def topic(address: str, name: str) -> None:
    """Create a topic with one partition, as a feed has."""
    # A client that is dropped loses its pending answers.
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)


def produce(address: str, name: str, messages: int, size_bytes: int) -> None:
    """Send at full speed, each acknowledged; print the begin and the end."""
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 5, "compression.type": "none"})
    began_s = time.time()
    for number in range(messages):
        payload = number.to_bytes(8, "big") * (size_bytes // 8)
        while True:
            try:
                producer.produce(name, payload)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    if producer.flush(PATIENCE_S):
        raise SystemExit("the broker did not acknowledge everything")
    print(json.dumps({"began_s": began_s, "ended_s": time.time()}), flush=True)


def consume(address: str, name: str, messages: int) -> None:
    """Read along from the beginning; print the time of the last message."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": f"peer-{time.time_ns()}", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    consumer.poll(1.0)
    print("ready", flush=True)
    got, give_up_s = 0, time.monotonic() + PATIENCE_S
    while got < messages and time.monotonic() < give_up_s:
        got += sum(message.error() is None for message in consumer.consume(1_000, 0.5))
    if got < messages:
        raise SystemExit(f"{got} of {messages} messages came")
    print(json.dumps({"ended_s": time.time()}), flush=True)
    consumer.close()


PATIENCE_S = 300.0

if __name__ == "__main__":
    role, broker, wanted, count, product_bytes = sys.argv[1:]
    if role == "topic":
        topic(broker, wanted)
    elif role == "produce":
        produce(broker, wanted, int(count), int(product_bytes))
    else:
        consume(broker, wanted, int(count))
