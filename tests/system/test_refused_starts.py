"""A fatal misconfiguration ends a part with one clear sentence: wrong address, old schema, misshapen topics."""

import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from sqlalchemy import text

from downburst.ledger import Ledger
from downburst.ledger.storage.databases import connect
from kit.kafka import Kafka
from kit.next_release import next_program
from kit.node import node_binary
from kit.postgres import Postgres
from kit.whole_hub import DOWNBURST, WholeHub

pytestmark = [pytest.mark.system]

PARTS = ("hub", "scheduler", "latency-service", "circuit-service", "alarm-service", "sender", "fleet")
BESIDE = PARTS[1:]


@pytest.fixture(scope="module")
def url(server: Postgres) -> str:
    """A ledger that is up to date."""
    url = server.url(server.database())
    Ledger.open(url).close()
    return url


@pytest.mark.parametrize("part", PARTS)
def test_brokers_where_nobody_listens(tmp_path: Path, url: str, part: str) -> None:
    told = refusal(tmp_path, part, url=url, kafka='servers = "127.0.0.1:1"')
    assert told == (
        "downburst: Kafka at 127.0.0.1:1 can't be reached: nothing listens there; start it, or correct kafka.servers"
    )


@pytest.mark.parametrize("part", ["hub", "sender"])
def test_a_database_server_where_nobody_listens(tmp_path: Path, broker: Kafka, part: str) -> None:
    url = "postgresql://downburst@127.0.0.1:1/downburst"
    told = refusal(tmp_path, part, url=url, kafka=f'servers = "{broker.address}"')
    assert "127.0.0.1:1" in told
    assert "can't be reached: nothing listens there; start the server, or correct host and port" in told


@pytest.mark.parametrize("part", BESIDE)
def test_a_ledger_of_an_earlier_release(tmp_path: Path, url: str, broker: Kafka, part: str) -> None:
    environment = next_program(tmp_path / "next")
    told = refusal(tmp_path, part, url=url, kafka=f'servers = "{broker.address}"', environment=environment)
    assert re.match(r"downburst: the ledger has schema (\d+), and this release reads (?!\1)\d+; start the hub", told)


@pytest.mark.parametrize("part", ["hub", "scheduler"])
def test_a_ledger_of_a_later_release(tmp_path: Path, server: Postgres, broker: Kafka, part: str) -> None:
    url = server.url(server.database())
    set_schema(url, "9999")
    told = refusal(tmp_path, part, url=url, kafka=f'servers = "{broker.address}"')
    assert "has schema 9999" in told
    assert "a newer release wrote it; use that one" in told


@pytest.mark.parametrize("part", PARTS)
def test_a_topic_of_several_partitions(tmp_path: Path, url: str, broker: Kafka, part: str) -> None:
    topic = f"wide-{part}.events"
    make(broker, NewTopic(topic, num_partitions=2, replication_factor=1))
    told = refusal(tmp_path, part, url=url, kafka=f'servers = "{broker.address}"\nprefix = "wide-{part}"')
    assert told.startswith(f"downburst: the topic {topic} has 2 partitions, and its records need one order")


@pytest.mark.parametrize("part", ["hub", "fleet"])
def test_a_setting_that_can_not_be(tmp_path: Path, url: str, part: str) -> None:
    told = refusal(tmp_path, part, url=url, kafka='servers = "127.0.0.1:1"\nsecurity = "none"')
    assert told.startswith("downburst: the setting 'kafka.security' can't be used: ")


def test_a_fleet_without_an_address_for_sites(tmp_path: Path, url: str, broker: Kafka) -> None:
    told = refusal(tmp_path, "fleet", url=url, kafka=f'servers = "{broker.address}"', sites="0.0.0.0:0")
    assert "sites can't be redirected to 0.0.0.0; set sender.public to HOST:PORT" in told


def test_feeds_whose_topics_hold_no_log_are_refused_in_a_sentence(
    tmp_path: Path, server: Postgres, broker: Kafka
) -> None:
    shaped = f'[kafka]\nservers = "{broker.address}"\nprefix = "shaped"\nproducts = "ingest"\nreplication = 1\n'
    hub = WholeHub(tmp_path / "hub", ledger_url=server.url(server.database()), more=shaped).start()
    make(broker, NewTopic("shaped.feed.WIDE", num_partitions=2, replication_factor=1))
    make(broker, NewTopic("shaped.feed.FOREIGN", num_partitions=1, replication_factor=1))
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce("shaped.feed.FOREIGN", b"order 4711")
    assert producer.flush(30) == 0
    for feed, sentence in (
        ("WIDE", "the topic shaped.feed.WIDE has 2 partitions, and a feed's products need one order; remove it"),
        ("FOREIGN", "holds a record at offset 0 that no Downburst of this release wrote; give each hub a prefix"),
    ):
        refused = hub.answer("POST", "/v1/feeds", json={"feed": feed, "class": "grid"})
        assert not refused.is_success
        assert sentence in refused.json()["detail"]
        assert hub.ask("GET", "/v1/feeds") == [], "nothing is left of it"
    hub.ask("POST", "/v1/feeds", json={"feed": "GOOD"})
    assert [feed["feed"] for feed in hub.ask("GET", "/v1/feeds")] == ["GOOD"]
    assert hub.stop() == 0


def refusal(
    directory: Path,
    part: str,
    *,
    url: str,
    kafka: str,
    sites: str = "127.0.0.1:0",
    environment: dict[str, str] | None = None,
) -> str:
    """The single line that a part prints when it cannot start, after its log."""
    settings = directory / "settings.toml"
    settings.write_text(
        f'data_dir = "{directory}/data"\nhttp = "127.0.0.1:0"\nsites = "{sites}"\nnode = "{node_binary()}"\n'
        f'ledger_url = "{url}"\nlatency_apart = true\n[scheduler]\napart = true\n[circuits]\napart = true\n'
        f'[alarms]\napart = true\n[fleet]\nkind = "children"\n'
        f'[kafka]\nreplication = 1\nproducts = "ingest"\n{kafka}\n'
    )
    argv = [DOWNBURST, part, "--settings", str(settings)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert ended.returncode not in (0, None), ended.stderr
    assert "Traceback" not in ended.stderr
    said = [line for line in ended.stderr.splitlines() if line.startswith("downburst: ")]
    assert said == ended.stderr.splitlines()[-1:], ended.stderr
    return said[0]


def set_schema(url: str, revision: str) -> None:
    """Makes the ledger claim that it is of another release."""
    Ledger.open(url).close()
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})
    engine.dispose()


def make(broker: Kafka, topic: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([topic]).values():
        made.result(30)
