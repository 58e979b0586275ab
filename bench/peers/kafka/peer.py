"""Apache Kafka as a peer: one broker, one topic of one partition, a consumer per site on librdkafka."""

import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.harness.counters import cpu_s
from bench.harness.delivery import HUB
from bench.harness.fan_out import FanOut, Stream
from bench.peers.consumers import Consumers
from bench.peers.tools import PEERS
from kit.namespaces import Lab
from kit.patience import wait_for


class Kafka:
    """A broker in the hub's namespace, in clear, its log in memory; consumers read all of it and drop it."""

    name = "Kafka"

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        """Fill the topic, then let every consumer read it."""
        with _broker(lab, directory) as broker:
            lab.output(HUB, _argv(lab, "produce", stream), timeout_s=180)
            with Consumers(lab, _argv(lab, "consume", stream)) as consumers:
                before_s = cpu_s([broker.pid])
                consumers.go()
                consumed = consumers.wait()
            spent_s = cpu_s([broker.pid]) - before_s + consumed.cpu_s
        consumed.needs(stream.products)
        took_s = (consumed.ended_us - consumed.began_us) / 1e6
        return FanOut(stream.products, stream.product_bytes, len(lab.hosts) - 1, took_s, spent_s)


def install_kafka(notes: list[str]) -> list[Kafka]:
    """Fetch broker and client if they are missing; a note reports a failure."""
    if lacking := [name for name in ("java", "mvn") if shutil.which(name) is None]:
        notes.append(f"The row of Kafka is left out: {' and '.join(lacking)} not installed (apt-get install maven).")
        return []
    for there, argv in ((_JARS / "done", _FETCH_BROKER), (_PYTHON / "done", _FETCH_CLIENT)):
        if there.exists():
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        fetched = subprocess.run(argv, capture_output=True, text=True, check=False)
        if fetched.returncode:
            why = (fetched.stderr or fetched.stdout).strip()[-300:]
            notes.append(f"The row of Kafka is left out, its packages could not be fetched: {why}")
            return []
        there.touch()
    return [Kafka()]


@contextmanager
def _broker(lab: Lab, directory: Path) -> Iterator[subprocess.Popen[str]]:
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "server.properties"
    config.write_text(_CONFIG.format(address=lab.address(HUB), port=PORT, data=directory / "data"))
    java = ["java", "-Xms512m", "-Xmx1g", "-cp", f"{_JARS}/*"]
    cluster = uuid.uuid4().hex[:22]
    lab.output(HUB, [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)], timeout_s=120)
    log_path = directory / "broker.log"
    with log_path.open("w") as log:
        broker = lab.run(HUB, [*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    try:
        wait_for("Kafka broker", lambda: _listens(lab), seconds=120)
        yield broker
    finally:
        broker.kill()
        broker.wait(timeout=20)


def _listens(lab: Lab) -> bool:
    return f":{PORT:04X} " in lab.output(HUB, ["cat", "/proc/net/tcp", "/proc/net/tcp6"])


def _argv(lab: Lab, role: str, stream: Stream) -> list[str]:
    broker = f"{lab.address(HUB)}:{PORT}"
    return [
        sys.executable,
        "-m",
        "bench.peers.kafka.client",
        role,
        broker,
        str(stream.products),
        str(stream.product_bytes),
    ]


PORT = 9092
_JARS, _PYTHON = PEERS / "kafka", PEERS / "python"
_FETCH_BROKER = [
    *("mvn", "-q", "-B", "-f", str(Path(__file__).with_name("pom.xml"))),
    *("dependency:copy-dependencies", f"-DoutputDirectory={_JARS}", "-DincludeScope=runtime"),
]
_FETCH_CLIENT = [
    *(sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-deps", "-q"),
    *("--target", str(_PYTHON), "confluent-kafka==2.16.1"),
]
_CONFIG = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{address}:9093
listeners=PLAINTEXT://{address}:{port},CONTROLLER://{address}:9093
advertised.listeners=PLAINTEXT://{address}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=1
offsets.topic.replication.factor=1
auto.create.topics.enable=true
"""
