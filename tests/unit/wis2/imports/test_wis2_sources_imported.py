"""Subscriptions of wis2downloader and pywis-pubsub become sources, with the topics and brokers that they state."""

import json
from typing import Any

import pytest

from downburst.wis2.imports.declared import declare
from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.result import Imported

CONFIG = {
    "broker_hostname": "globalbroker.example",
    "broker_password": "everyone",
    "broker_port": 443,
    "broker_protocol": "websockets",
    "broker_username": "everyone",
    "download_dir": "downloads",
    "download_workers": 4,
}
SYNOP = "cache/a/wis2/+/data/core/weather/surface-based-observations/#"
SHIP = "cache/a/wis2/de-dwd/data/core/ocean/#"


def imported(**files: Any) -> Imported:
    """Files by their names; those that are no text become JSON."""
    texts = {name: text if isinstance(text, str) else json.dumps(text, indent=1) for name, text in files.items()}
    return declare([ConfigFile(name, text) for name, text in texts.items()])


def reasons(made: Imported) -> dict[str, str]:
    return {one["line"]: one["why"] for one in made.no_equivalent}


def urls(made: Imported) -> list[str]:
    return [broker["url"] for bridge in made.bridges for broker in bridge["brokers"]]


def test_each_directory_becomes_a_source_with_a_feed() -> None:
    topics = {SYNOP: "surface-obs", SHIP: "surface-obs", "cache/a/wis2/fr-meteofrance/data/core/#": "$TOPIC"}
    made = imported(config=CONFIG, session={"topics": topics, "client_id": "a"})
    assert [(one["bridge"], one["feed"], one["topics"]) for one in made.bridges] == [
        ("surface-obs", "surface-obs", [SYNOP, SHIP]),
        ("wis2", "wis2", ["cache/a/wis2/fr-meteofrance/data/core/#"]),
    ]
    assert made.bridges[0]["brokers"] == [
        {"url": "wss://globalbroker.example/mqtt", "user": "everyone", "mqtt": 5},
    ]
    assert [(one["feed"], one["retention_hours"]) for one in made.feeds] == [("surface-obs", 24), ("wis2", 24)]
    assert made.commands == [
        "downburst feeds add surface-obs --retention-hours 24",
        "downburst bridges add surface-obs --feed surface-obs --broker wss://globalbroker.example/mqtt "
        f"--topic '{SYNOP}' --topic '{SHIP}'",
        "downburst feeds add wis2 --retention-hours 24",
        "downburst bridges add wis2 --feed wis2 --broker wss://globalbroker.example/mqtt "
        "--topic 'cache/a/wis2/fr-meteofrance/data/core/#'",
    ]
    assert made.no_equivalent == []
    assert [one["at"] for one in made.carried] == ["config:7", "config:8", "session:7"]


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "wss://globalbroker.example/mqtt"),
        ({"broker_port": 8883, "broker_protocol": "tcp"}, "mqtts://globalbroker.example"),
        ({"broker_port": 443, "broker_protocol": "tcp"}, "mqtts://globalbroker.example:443"),
        ({"broker_port": 1883, "broker_protocol": "tcp"}, "mqtt://globalbroker.example"),
        ({"broker_port": 8884, "broker_protocol": "tcp"}, "mqtt://globalbroker.example:8884"),
        ({"broker_port": 8080}, "ws://globalbroker.example:8080/mqtt"),
        ({"broker_hostname": "wss://gb.example/other"}, "wss://gb.example/other"),
        ({"broker_hostname": "2001:db8::1", "broker_port": 8883, "broker_protocol": "tcp"}, "mqtts://[2001:db8::1]"),
    ],
)
def test_transport_and_port_make_the_address(given: dict[str, Any], url: str) -> None:
    assert urls(imported(config=CONFIG | given | {"topics": {SYNOP: "a"}})) == [url]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"broker_port": "many"}, "the port of the broker"),
        ({"broker_port": 0}, "the port of the broker"),
        ({"broker_port": 10**30}, "the port of the broker"),
        ({"broker_protocol": "udp"}, "neither tcp nor websockets"),
        ({"broker_hostname": "a b"}, "names no host"),
        ({"broker_hostname": ""}, "names no host"),
        ({"broker_hostname": "amqps://gb.example"}, "no address of a broker"),
        ({"broker_hostname": "wss://gb.example:99999"}, "the port of the broker"),
        ({"broker_hostname": "wss://[gb.example"}, "can't be read"),
        ({"mqtt_version": "7"}, "neither 5 nor 3.1.1"),
    ],
)
def test_a_broker_that_can_not_be_named_is_a_reason(given: dict[str, Any], part: str) -> None:
    made = imported(config=CONFIG | given | {"topics": {SYNOP: "a"}})
    assert [made.bridges, made.commands] == [[], []]
    assert any(part in why for why in reasons(made).values()), made.no_equivalent
    assert any("no broker is in these files" in why for why in reasons(made).values())


@pytest.mark.parametrize("version", ["3.1.1", "311", "MQTTv311", "4"])
def test_mqtt_311_is_an_option(version: str) -> None:
    made = imported(config=CONFIG | {"mqtt_version": version, "topics": {SYNOP: "a"}})
    assert made.bridges[0]["brokers"][0]["mqtt"] == 311
    assert made.commands[1].endswith(" --mqtt 311")


def test_a_password_is_named_and_not_shown() -> None:
    own = {"broker_username": "anna", "broker_password": "hidden", "topics": {SYNOP: "a"}}
    made = imported(config=CONFIG | own)
    assert made.bridges[0]["brokers"][0] == {
        "url": "wss://globalbroker.example/mqtt",
        "user": "anna",
        "mqtt": 5,
        "password_from": "config:3 broker_password",
        "password_file": "anna-globalbroker.example.password",
    }
    assert "--user anna --password-file anna-globalbroker.example.password" in made.commands[1]
    assert "hidden" not in json.dumps(made.document())


@pytest.mark.parametrize(
    ("topic", "part"),
    [
        ("#", "is no filter of topics"),
        ("cache/#/data", "is no filter of topics"),
        ("news/a/wis2/#", "begins with none of"),
        ("cache/v04/#", "topics of WIS2 begin with"),
        ("cache/a/gts/#", "topics of WIS2 begin with"),
        ("cache/a/wis2/mwi/mwi_met/data/core/weather", "pilot phase"),
        ("x" * 600, "is no filter of topics"),
        ("", "is no filter of topics"),
    ],
)
def test_topics_that_bring_nothing_are_reasons(topic: str, part: str) -> None:
    made = imported(
        config=CONFIG | {"topics": [topic, SYNOP]} if topic else CONFIG | {"topics": {"": "a", SYNOP: "a"}}
    )
    assert [one["topics"] for one in made.bridges] == [[SYNOP]]
    assert any(part in why for why in reasons(made).values()), made.no_equivalent


@pytest.mark.parametrize("topic", ["cache/#", "cache/+/wis2/#", "cache/a/wis2/+/data/core/#", "cache/a/wis2/+/#"])
def test_wildcards_stay(topic: str) -> None:
    assert imported(config=CONFIG | {"topics": [topic]}).bridges[0]["topics"] == [topic]


@pytest.mark.parametrize(
    ("topic", "recommended", "advice"),
    [
        ("origin/a/wis2/de-dwd/data/recommended/weather/#", True, False),
        ("origin/a/wis2/#", True, True),
        ("cache/a/wis2/de-dwd/data/recommended/weather/#", False, True),
        ("origin/a/wis2/de-dwd/data/core/weather/#", False, True),
        ("cache/a/wis2/#", False, False),
    ],
)
def test_recommended_data_are_an_option(topic: str, recommended: bool, advice: bool) -> None:
    made = imported(config=CONFIG | {"topics": [topic]})
    assert made.bridges[0]["takes_recommended"] is recommended
    assert ("advice" in made.bridges[0]) is advice
    assert made.commands[1].endswith(" --recommended") is recommended


COMPOSE = """\
x-env: &env
  GLOBAL_BROKER_PASSWORD: everyone
services:
  redis:
    image: redis
    command: ["--requirepass", "hidden"]
  one:
    environment:
      <<: *env
      GLOBAL_BROKER_HOST: globalbroker.one.example
      GLOBAL_BROKER_PORT: 443
      MQTT_PROTOCOL: websockets
  two:
    environment:
      - GLOBAL_BROKER_HOST=${HOST_OF_TWO:-globalbroker.two.example}
      - GLOBAL_BROKER_PORT=8883
      - MQTT_PROTOCOL=tcp
      - MQTT_SESSION_ID=two
  other: {image: other}
"""
LISTED = {SYNOP: {"1f": {"save_path": "obs", "filter": {}}, "2f": {"save_path": None, "filter": {"rules": [1]}}}}


def test_version_2_has_its_brokers_in_the_compose_file_and_its_topics_in_the_list() -> None:
    made = imported(compose=COMPOSE, listed=LISTED)
    assert [(one["bridge"], one["topics"]) for one in made.bridges] == [("obs", [SYNOP]), ("wis2", [SYNOP])]
    assert urls(made)[:2] == ["wss://globalbroker.one.example/mqtt", "mqtts://globalbroker.two.example"]
    found = reasons(made)
    assert "subscriptions of sites have patterns" in found["filter"]
    assert "Redis" in found["services.redis"]
    assert found["services.other"] == found["x-env"] == "a hub starts no containers"
    assert [one["line"] for one in made.carried] == ["services.one", "services.two", "MQTT_SESSION_ID=two"]
    assert "hidden" not in json.dumps(made.document())


def test_brokers_without_topics_say_where_the_topics_are() -> None:
    found = reasons(imported(compose=COMPOSE))
    assert "GET /subscriptions" in found["GLOBAL_BROKER_HOST=globalbroker.one.example"]
    assert "GET /subscriptions" in found["GLOBAL_BROKER_HOST=${HOST_OF_TWO:-globalbroker.two.example}"]
    found = reasons(imported(config=CONFIG | {"mqtt_session_info": "session.json"}))
    assert "give that file too" in found["mqtt_session_info: session.json"]
    found = reasons(imported(config=CONFIG))
    assert "no topic is in these files" in found["broker: wss://globalbroker.example/mqtt"]


@pytest.mark.parametrize(
    "listed",
    [
        {SYNOP: {"target": "obs", "pattern": "a"}},
        {"1f": {"id": "1f", "topic": SYNOP, "save_path": "obs", "filter": {}}},
        [{"id": "1f", "topic": SYNOP, "save_path": "obs"}],
        {"id": "1f", "topic": SYNOP, "save_path": "obs"},
        {"topics": {SYNOP: "./obs/"}, "client_id": "a"},
    ],
)
def test_lists_of_subscriptions_have_five_forms(listed: object) -> None:
    made = imported(config=CONFIG, listed=listed)
    assert [(one["bridge"], one["topics"]) for one in made.bridges] == [("obs", [SYNOP])]


def test_topics_that_are_given_twice_count_once_and_duplicate_keys_are_named() -> None:
    made = imported(config=CONFIG, listed=[{"topic": SYNOP, "target": "a"}, {"topic": SYNOP, "target": "a"}])
    assert made.bridges[0]["topics"] == [SYNOP]
    assert "given before it" in reasons(made)[f"topic: {SYNOP}"]
    text = (
        '{"broker_hostname": "a.example",\n "download_dir": "a",\n "download_dir": "b", "topics": ["cache/a/wis2/#"]}'
    )
    assert made.bridges
    found = imported(config=text).no_equivalent
    assert [(one["at"], one["line"]) for one in found] == [("config:2", "download_dir")]


def test_a_source_has_one_user_and_at_most_eight_brokers_and_two_hundred_topics() -> None:
    service = "  s{0}:\n    environment:\n      GLOBAL_BROKER_HOST: gb{0}.example\n"
    services = "services:\n" + "".join(service.format(one) for one in range(10))
    services += (
        "  other:\n    environment:\n      GLOBAL_BROKER_HOST: gb.example\n      GLOBAL_BROKER_USERNAME: anna\n"
    )
    topics = {f"cache/a/wis2/xx-centre{one}/data/core/#": "a" for one in range(201)}
    made = imported(compose=services, listed={"topics": topics})
    assert [(one["bridge"], len(one["brokers"]), len(one["topics"])) for one in made.bridges] == [
        ("a", 8, 200),
        ("a-2", 8, 1),
    ]
    found = reasons(made)
    assert "at most 8 brokers" in found["broker: wss://gb9.example/mqtt"]
    assert "one user, password and version" in found["broker: wss://gb.example/mqtt"]


PYWIS = """\
broker: mqtts://anna:hid%40den@gb.example:8883
subscribe_topics:
  - cache/a/wis2/+/data/core/weather/#   # core
  - '#'
qos: 0
verify_certs: false
verify_data: true
bbox: 1,2,3,4
storage:
  type: S3
  options: {url: 'http://minio.example', bucket: a}
unheard_of: 1
sub_protocol_version: MQTTv311
"""


def test_pywis_pubsub_has_a_file_of_its_own() -> None:
    made = imported(pywis=PYWIS)
    assert made.commands[1] == (
        "downburst bridges add wis2 --feed wis2 --broker mqtts://gb.example "
        "--topic 'cache/a/wis2/+/data/core/weather/#' --user anna --password-file anna-gb.example.password --mqtt 311"
    )
    assert made.bridges[0]["brokers"][0]["password_from"] == "pywis:1 (in the address)"
    assert {one["line"]: one["at"] for one in made.no_equivalent} == {
        "topic: #": "pywis:4",
        "qos: 0": "pywis:5",
        "verify_certs: false": "pywis:6",
        "bbox: 1,2,3,4": "pywis:8",
        "storage.type: S3": "pywis:9",
        "unheard_of: 1": "pywis:12",
    }
    assert [one["line"] for one in made.carried] == ["verify_data: true"]
    assert not any(part in json.dumps(made.document()) for part in ("hid@den", "hid%40den"))


def test_files_that_are_whole_do_not_share_their_topics() -> None:
    one = "broker: mqtts://one.example\nsubscribe_topics: [cache/a/wis2/xx-one/#]\n"
    two = "broker: mqtts://two.example\nsubscribe_topics: [cache/a/wis2/xx-two/#]\n"
    made = imported(one=one, two=two)
    assert [(bridge["bridge"], bridge["topics"]) for bridge in made.bridges] == [
        ("wis2", ["cache/a/wis2/xx-one/#"]),
        ("wis2-2", ["cache/a/wis2/xx-two/#"]),
    ]
    assert urls(made) == ["mqtts://one.example", "mqtts://two.example"]


def test_brokers_with_other_passwords_of_the_same_user_are_named() -> None:
    service = (
        "  s{0}:\n    environment:\n      GLOBAL_BROKER_HOST: gb{0}.example\n      GLOBAL_BROKER_USERNAME: anna\n"
    )
    passwords = ["      GLOBAL_BROKER_PASSWORD: one\n", "      GLOBAL_BROKER_PASSWORD: two\n"]
    text = "services:\n" + "".join(service.format(one) + passwords[one % 2] for one in range(3))
    made = imported(compose=text, listed={"topics": {SYNOP: "a"}})
    assert urls(made) == ["wss://gb0.example/mqtt", "wss://gb2.example/mqtt"]
    assert "one user, password and version" in reasons(made)["broker: wss://gb1.example/mqtt"]
