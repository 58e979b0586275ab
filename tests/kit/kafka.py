"""A Kafka broker of the tests' own (KRaft, one node), which may be killed and started again.

Its packages come from Maven once, into Maven's own cache and from there into `.cache/peers/kafka`.
"""

import fcntl
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from kit.capabilities import skip
from kit.patience import wait_for
from kit.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]


class Kafka:
    """One broker with three listeners: plain, and with TLS and passwords, for clients; one for itself."""

    def __init__(self, jars: Path, host: str = "127.0.0.1") -> None:
        self._jars = jars
        self.host = host
        self.directory = Path(tempfile.mkdtemp(prefix="downburst-kafka."))
        self.port, self.tls_port, controller = free_ports(3)
        self.ca_file = self.directory / "certificate.pem"
        self.log = self.directory / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._make_certificate()
        self._configuration = self.directory / "server.properties"
        self._configuration.write_text(
            _CONFIGURATION.format(broker=self, controller=controller, user=USER, password=PASSWORD)
        )
        self._java(
            "kafka.tools.StorageTool", "format", "-t", "DownburstClusterTest00", "-c", str(self._configuration)
        )

    @property
    def address(self) -> str:
        """The address for a hub."""
        return f"{self.host}:{self.port}"

    def start(self) -> Self:
        """Starts the broker and waits until it reports its start."""
        seen = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            argv = [*_JAVA, "-cp", f"{self._jars}/*", "kafka.Kafka", str(self._configuration)]
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for("a broker that has started", lambda: self._has_started(seen), 90)
        return self

    def kill(self) -> None:
        """`kill -9`."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(timeout=30)

    def revive(self) -> None:
        """Starts the broker again if it was killed."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def signal(self, number: int) -> None:
        """Sends the broker a signal, for example to suspend it."""
        assert self._process is not None
        self._process.send_signal(number)

    def remove(self) -> None:
        """Ends the broker, and removes its files."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _has_started(self, seen: int) -> bool:
        text = self.log.read_bytes()[seen:]
        assert self._process is not None
        assert self._process.poll() is None, text[-3000:].decode(errors="replace")
        return b"Kafka Server started" in text

    def _make_certificate(self) -> None:
        key = self.directory / "key.pem"
        argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker"]
        argv += ["-addext", f"subjectAltName=IP:{self.host}", "-keyout", str(key), "-out", str(self.ca_file)]
        subprocess.run(argv, check=True, capture_output=True, timeout=60)
        (self.directory / "keystore.pem").write_text(key.read_text() + self.ca_file.read_text())

    def _java(self, *arguments: str) -> None:
        argv = [*_JAVA, "-cp", f"{self._jars}/*", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def kafka(host: str = "127.0.0.1") -> Iterator[Kafka]:
    """A running broker; the test is skipped where Java or its packages are missing."""
    broker = Kafka(_jars(), host)
    try:
        yield broker.start()
    finally:
        broker.remove()


def _jars() -> Path:
    for command, package in (("java", "openjdk-17-jre-headless"), ("mvn", "maven"), ("openssl", "openssl")):
        if shutil.which(command) is None:
            skip(f"{command} is not installed; apt-get install {package}")
    jars = ROOT / ".cache/peers/kafka"
    jars.mkdir(parents=True, exist_ok=True)
    with (jars.parent / "kafka.lock").open("w") as lock:
        # Several test processes may run this concurrently.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (jars / "done").exists():
            argv = ["mvn", "-q", "-B", "-f", str(ROOT / "bench/peers/kafka/pom.xml"), "dependency:copy-dependencies"]
            argv += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
            if done.returncode != 0:
                skip(f"Maven could not bring Kafka: {done.stdout[-300:]}")
            (jars / "done").touch()
    return jars


USER, PASSWORD = "downburst", "test-only"
_JAVA = ["java", "-Xms96m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
_JAVA += [f"-Dlog4j2.configurationFile={Path(__file__).with_name('kafka-log4j2.properties')}"]
_CONFIGURATION = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://{broker.host}:{broker.port},SASL_SSL://{broker.host}:{broker.tls_port},\
CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://{broker.host}:{broker.port},SASL_SSL://{broker.host}:{broker.tls_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={broker.directory}/keystore.pem
log.dirs={broker.directory}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=2500
log.cleaner.dedupe.buffer.size=16777216
auto.create.topics.enable=false
"""
