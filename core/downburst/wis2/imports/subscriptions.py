"""Subscriptions as wis2downloader and pywis-pubsub state them: brokers, and topics with their directories."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from downburst.foundation.errors import BadInput
from downburst.wis2.imports.brokers import Signed, StatedBroker, broker_of_parts, broker_of_url, mqtt_version
from downburst.wis2.imports.files import ConfigFile, Spot
from downburst.wis2.imports.judging import judge_tree
from downburst.wis2.imports.reasons import DOWNLOADER, PYWIS
from downburst.wis2.imports.result import Imported, stated
from downburst.wis2.imports.tree import Entry, Items, Leaf, Table, Tree, texts


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that is subscribed."""

    spot: Spot
    text: str
    target: str | None = None
    """The directory of its files; None: one named by the topic."""


@dataclass(slots=True)
class Subscribed:
    """Brokers with the topics that are subscribed at each of them."""

    brokers: list[StatedBroker] = field(default_factory=list)
    topics: list[Topic] = field(default_factory=list)
    advice: list[tuple[Spot, str, str]] = field(default_factory=list)
    """Places, statements and remedies for the case that topics are missing."""

    def add(self, other: "Subscribed") -> None:
        """Takes brokers and topics of another file."""
        self.brokers += other.brokers
        self.topics += other.topics
        self.advice += other.advice


def read_downloader(made: Imported, file: ConfigFile, document: Table) -> Subscribed:
    """wis2downloader's file, or the one of its session, which holds the topics."""
    found = Subscribed()
    entry = next((one for key in HOSTS if (one := document.entry(key)) is not None), None)
    if entry is not None:
        _add_broker(made, file, document, entry, document.text(entry.key) or "", found)
    topics = document.entry("topics")
    found.topics = list(_topics(made, file, topics.value)) if topics is not None else []
    named = document.entry("mqtt_session_info")
    if named is not None:
        found.advice.append((file.at(named.line), stated(named.key, document.text(named.key)), GIVE_SESSION))
    _judge_downloader(made, file, document)
    return found


def read_subscriptions(made: Imported, file: ConfigFile, document: Tree) -> Subscribed:
    """The subscriptions of wis2downloader 2 as its API lists them, by topic or one by one."""
    return Subscribed(topics=list(_topics(made, file, document)))


def read_pywis(made: Imported, file: ConfigFile, document: Table) -> Subscribed:
    """pywis-pubsub's file of a subscription."""
    found = Subscribed()
    entry = document.entry("broker")
    if entry is not None:
        _add_broker(made, file, document, entry, document.text("broker") or "", found)
    key = "subscribe_topics" if document.entry("subscribe_topics") is not None else "topics"
    topics = document.entry(key)
    if topics is not None:
        found.topics = list(_topics(made, file, topics.value))
    _judge_pywis(made, file, document)
    return found


def _add_broker(
    made: Imported, file: ConfigFile, document: Table, entry: Entry, host: str, found: Subscribed
) -> None:
    spot = file.at(entry.line)
    user = next((text for key in USERS if (text := document.text(key))), None)
    secret = next((one for key in PASSWORDS if (one := document.entry(key)) is not None), None)
    password = document.text(secret.key) if secret is not None else None
    signed = Signed(user, password, f"{file.at(secret.line)} {secret.key}" if secret is not None else "")
    version = next((text for key in VERSIONS if (text := document.text(key))), None)
    transport = document.text("broker_protocol") or document.text("protocol")
    try:
        mqtt = mqtt_version(version)
        if "://" in host:
            found.brokers.append(broker_of_url(spot, host, signed, mqtt))
        else:
            port = document.text("broker_port") or document.text("port")
            found.brokers.append(broker_of_parts(spot, host, port, transport, signed, mqtt))
    except BadInput as error:
        made.without(spot, stated(entry.key, host), error.sentence)


def _topics(made: Imported, file: ConfigFile, tree: Tree) -> Iterator[Topic]:
    """Topics in one of the forms in use: a list, topics with directories, topics with subscriptions by id."""
    match tree:
        case Leaf() if tree.text:
            yield Topic(file.at(tree.line), tree.text)
        case Items():
            for one in tree.items:
                yield from _topics(made, file, one)
        case Table() if tree.text("topic"):
            yield _single(made, file, tree)
        case Table():
            for entry in tree.last:
                yield from _of_entry(made, file, entry)


def _single(made: Imported, file: ConfigFile, table: Table, topic: str | None = None, line: int = 0) -> Topic:
    """A subscription of wis2downloader 2."""
    for key in FILTERS:
        entry = table.entry(key)
        if entry is not None and texts(entry.value):
            made.without(file.at(entry.line), key, FILTERED)
    target = next((text for key in TARGETS if (text := table.text(key))), None)
    return Topic(file.at(line or table.line), topic or table.text("topic") or "", target)


def _of_entry(made: Imported, file: ConfigFile, entry: Entry) -> Iterator[Topic]:
    """A topic with its directory, or with its subscriptions; or the id of a subscription, which names its topic."""
    value = entry.value
    if isinstance(value, Leaf):
        yield Topic(file.at(entry.line), entry.key, value.text if value.text != "$TOPIC" else None)
    elif isinstance(value, Table) and value.text("topic"):
        yield _single(made, file, value)
    elif isinstance(value, Table):
        inner = [one.value for one in value.last if isinstance(one.value, Table) and one.key not in FILTERS]
        for one in inner or [value]:
            yield _single(made, file, one, entry.key, entry.line)


def _judge_downloader(made: Imported, file: ConfigFile, document: Table) -> None:
    rest = tuple(one for one in document.entries if one.key != "topics")
    judge_tree(made, file, Table(document.line, rest), DOWNLOADER)


def _judge_pywis(made: Imported, file: ConfigFile, document: Table) -> None:
    """A few settings are covered with one value, and are not with the other."""
    rest = list(document.entries)
    for key, covered, why in BY_VALUE:
        entry = document.entry(key)
        text = document.text(key)
        if entry is not None and text is not None and text.lower() != covered:
            made.without(file.at(entry.line), stated(key, text), why)
            rest = [one for one in rest if one.key != key]
    storage = document.text("storage", "type")
    if storage is not None and storage.lower() != "fs":
        entry = document.entry("storage")
        made.without(file.at(entry.line if entry else 1), stated("storage.type", storage), NO_OBJECTS)
        rest = [one for one in rest if one.key != "storage"]
    judge_tree(made, file, Table(document.line, tuple(rest)), PYWIS)


HOSTS = ("broker_hostname", "broker_url", "broker")
USERS = ("broker_username", "username", "sub_user")
PASSWORDS = ("broker_password", "password", "sub_password")
VERSIONS = ("mqtt_version", "sub_protocol_version")
TARGETS = ("save_path", "target")
FILTERS = ("filter", "filters")
FILTERED = "a source takes whole topics; subscriptions of sites have patterns: downburst subscriptions add --pattern"
GIVE_SESSION = "it holds the topics: give that file too, DOWNLOAD_DIR/.session-info.json in wis2box"
NO_OBJECTS = "products are kept in the logs of feeds; a site writes files, and none writes to an object store"
BY_VALUE = (
    ("qos", "1", "a source subscribes with QoS 1"),
    ("clean_session", "false", "a source keeps its session at the broker while the hub is away"),
    ("verify_data", "true", "length and digest are always checked"),
    ("verify_certs", "true", "certificates are always checked"),
)
"""Keys of pywis-pubsub, the value that is covered, and the reason why another one is not."""
