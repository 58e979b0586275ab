"""The brokers: connections to them, the topics on them, and the meaning of their errors to a user."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from downburst.foundation.errors import BadSettings, Failure
from downburst.settings.kafka import KafkaSettings

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic, of one partition, so that its records have one order."""

    name: str
    settings: Mapping[str, str]


class Cluster:
    """The brokers of one hub."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self.events = Topic(f"{settings.prefix}.events", {"cleanup.policy": "delete", "retention.ms": f"{EVENTS_MS}"})
        self.plans = Topic(f"{settings.prefix}.plans", {"cleanup.policy": "compact"})
        self.batches = Topic(
            f"{settings.prefix}.batches", {"cleanup.policy": "delete", "retention.ms": f"{BATCHES_MS}"}
        )
        self._reasons: list[str] = []

    def options(self, **more: object) -> Options:
        """The options of every client, and further ones for one of them."""
        wanted = self._settings
        options: Options = {
            "bootstrap.servers": wanted.servers,
            "client.id": "downburst",
            "security.protocol": _PROTOCOLS[wanted.security],
            "socket.keepalive.enable": True,
            # Brokers that all went away return at the addresses of the settings: those are queried after this time.
            "metadata.recovery.rebootstrap.trigger.ms": 10_000,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": self._hear,
            # The client would log to standard error; errors are reported in a sentence instead.
            "log_level": 2,
        }
        for option, value in (
            ("ssl.ca.location", wanted.ca_file),
            ("ssl.certificate.location", wanted.certificate_file),
            ("ssl.key.location", wanted.key_file),
        ):
            if value is not None:
                options[option] = str(value)
        if wanted.security.startswith("sasl"):
            options |= self._credentials()
        return options | {name.replace("_", "."): value for name, value in more.items()}

    def prepare(self) -> None:
        """Creates missing topics, and refuses unusable ones; without an answer a one-sentence error."""
        admin = AdminClient(self.options())
        try:
            found = admin.list_topics(timeout=ANSWER_S).topics
            wanted = (self.events, self.plans, self.batches)
            self._make(admin, [topic for topic in wanted if topic.name not in found])
            for topic in wanted:
                if topic.name in found:
                    _check_partitions(topic, len(found[topic.name].partitions))
            if self.plans.name in found:
                self._check_compacted(admin)
        except KafkaException as error:
            # The callback gets the reason of the broken connections, apart from the error.
            admin.poll(0)
            raise self.explained(error) from error

    def explained(self, error: KafkaException) -> Failure:
        """One sentence about unusable brokers."""
        reason = error.args[0]
        where = f"Kafka at {self._settings.servers}"
        said = next((one for one in reversed(self._reasons) if "brokers are down" not in one), "")
        for part, sentence in _MEANINGS:
            if part in said or part in str(reason):
                return Failure(f"{where} {sentence}")
        if isinstance(reason, KafkaError) and reason.code() in _NO_ANSWER:
            return Failure(
                f"{where} does not answer; start it, correct kafka.servers, or set kafka.security as it requires"
            )
        text = reason.str() if isinstance(reason, KafkaError) else str(reason)
        return Failure(f"{where} can't be used: {said or text}")

    def _make(self, admin: AdminClient, topics: list[Topic]) -> None:
        if not topics:
            return
        copies = self._settings.replication or -1
        made = admin.create_topics(
            [
                NewTopic(topic.name, num_partitions=1, replication_factor=copies, config=dict(topic.settings))
                for topic in topics
            ],
            request_timeout=ANSWER_S,
        )
        for name, future in made.items():
            try:
                # The client ends it, with a reason, at its timeout.
                future.result()
            except KafkaException as error:
                # Another process of the hub may have created it in between.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise Failure(f"the topic {name} can't be made: {error.args[0].str()}") from error

    def _check_compacted(self, admin: AdminClient) -> None:
        resource = ConfigResource(ResourceType.TOPIC, self.plans.name)
        found = admin.describe_configs([resource], request_timeout=ANSWER_S)[resource].result()
        if found["cleanup.policy"].value != "compact":
            raise Failure(
                f"the topic {self.plans.name} has cleanup.policy {found['cleanup.policy'].value}, so plans would be "
                "forgotten; set it to compact, or name another prefix (kafka.prefix)"
            )

    def _credentials(self) -> Options:
        wanted = self._settings
        if wanted.sasl_password_file is None:
            raise BadSettings(
                "kafka.security is sasl, and kafka.sasl_password_file names no file; name the one with it"
            )
        try:
            password = wanted.sasl_password_file.read_text().strip()
        except OSError as error:
            raise BadSettings(f"{wanted.sasl_password_file} can't be read ({error.strerror}); correct it") from error
        return {
            "sasl.mechanism": wanted.sasl_mechanism,
            "sasl.username": wanted.sasl_user,
            "sasl.password": password,
        }

    def _hear(self, error: KafkaError) -> None:
        self._reasons = [*self._reasons[-4:], error.str()]


def _check_partitions(topic: Topic, partitions: int) -> None:
    if partitions != 1:
        raise Failure(
            f"the topic {topic.name} has {partitions} partitions, and its records need one order; remove it, so "
            "that it is recreated with one, or name another prefix (kafka.prefix)"
        )


ANSWER_S = 10.0
EVENTS_MS = 3_600_000
"""An hour: a process that was away for longer reads the ledger anyway."""
BATCHES_MS = 7 * 24 * 3_600_000
_PROTOCOLS = {"plaintext": "PLAINTEXT", "tls": "SSL", "sasl": "SASL_PLAINTEXT", "sasl-tls": "SASL_SSL"}
_NO_ANSWER = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN})
_MEANINGS = (
    ("Authentication failed", "refused user or password; correct kafka.sasl_user and kafka.sasl_password_file"),
    (
        "certificate verify failed",
        "has a certificate from an unknown authority; correct kafka.ca_file",
    ),
    ("SSL handshake", "does not use TLS as configured; correct kafka.security or the port"),
    ("Failed to resolve", "has an unknown host name; correct kafka.servers"),
    ("Connection refused", "can't be reached: nothing listens there; start it, or correct kafka.servers"),
)
