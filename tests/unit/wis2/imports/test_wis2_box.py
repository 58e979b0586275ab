"""Datasets of a wis2box become publishers, with a record where the facts for it are stated."""

import json

import pytest

from downburst.wis2.imports.declared import declare
from downburst.wis2.imports.files import ConfigFile
from downburst.wis2.imports.result import Imported

BOX = """\
# a node of our own
export WIS2BOX_URL="https://wis2.example.org/"
WIS2BOX_BROKER_USERNAME=node  # the user
WIS2BOX_BROKER_PASSWORD='hid#den'
WIS2BOX_BROKER_PUBLIC=mqtts://${WIS2BOX_BROKER_USERNAME}:${WIS2BOX_BROKER_PASSWORD}@broker.example.org:8883
WIS2BOX_STORAGE_DATA_RETENTION_DAYS=7
WIS2BOX_STORAGE_PASSWORD=hidden-too
WIS2BOX_LOGGING_LOGLEVEL=INFO
WIS2BOX_LOGGING_LOGLEVEL=DEBUG
SOME_URL=https://anna:hidden-as-well@files.example.org
"""
DATASET = """\
wis2box:
  retention: P30D
  topic_hierarchy: xx-example/data/core/weather/surface-based-observations/synop
  country: xxx
  centre_id: xx-example
  data_mappings:
    plugins:
      bufr4:
        - plugin: wis2box.data.universal.UniversalData
          notify: true
          file-pattern: '^.*\\.bufr4$'
        - plugin: wis2box.data.bufr2geojson.ObservationDataBUFR2GeoJSON
          file-pattern: '^WIGOS_.*\\.bufr4$'
mcf: {version: 1.0}
metadata:
  identifier: urn:wmo:md:xx-example:synop
identification:
  title: Synops
  abstract: |
    Surface observations
    of Example.
  keywords:
    default: {keywords: [synop, surface, land]}
  extents:
    spatial: [{bbox: [-10.5, -20, 30, 40], crs: 4326}]
    temporal: [{begin: 2021-11-29, end: null}]
  rights: Some rights
contact:
  host: &host
    organization: Example Met
    url: https://example.org
    phone: "+1 23"
    fax: null
    email: met@example.org
  distributor: *host
"""


def imported(**files: str) -> Imported:
    return declare([ConfigFile(name, text) for name, text in files.items()])


def reasons(made: Imported) -> dict[str, str]:
    return {one["line"]: one["why"] for one in made.no_equivalent}


def test_a_dataset_becomes_a_publisher_with_its_record() -> None:
    made = imported(box=BOX, synop=DATASET)
    assert made.commands == [
        "downburst feeds add synop --retention-hours 24",
        "downburst publishers add synop --feed synop --centre xx-example --topic "
        "core/weather/surface-based-observations/synop --metadata-id urn:wmo:md:xx-example:synop --broker "
        "mqtts://broker.example.org --user node --password-file node-broker.example.org.password --base-url "
        "https://wis2.example.org --pattern '^.*\\.bufr4$' --media-type application/bufr",
        "downburst publishers describe synop --title Synops --description 'Surface observations of Example.' "
        "--organization 'Example Met' --email met@example.org --website https://example.org --country XXX "
        "--keyword synop --keyword surface --keyword land --begin 2021-11-29T00:00:00Z --bounds -10.5 -20 30 40",
    ]
    (publisher,) = made.publishers
    assert publisher["broker"]["password_from"] == "box:4 WIS2BOX_BROKER_PASSWORD"
    assert publisher["at"] == "synop:3"
    assert "advice" not in publisher
    assert reasons(made) == {
        "WIS2BOX_STORAGE_PASSWORD=…": "products are kept in the logs of feeds, not in an object store; "
        "put files in by the setting watch",
        "WIS2BOX_LOGGING_LOGLEVEL=INFO": "it is given again in box:9",
        "WIS2BOX_LOGGING_LOGLEVEL=DEBUG": "a hub logs to its standard error, which systemd keeps; "
        "the journal has its own limits",
        "SOME_URL=https://…@files.example.org": "no setting of a hub corresponds to it",
        "plugins.bufr4: wis2box.data.bufr2geojson.ObservationDataBUFR2GeoJSON": "there is no API of observations, "
        "for data are not decoded",
        "identification.rights: Some rights": "a record states rights by the address of a licence: "
        "describe --license",
        "contact.host.phone: +1 23": "a record names the contact's organization, e-mail, site and country",
        "contact.distributor": "a record names one contact, the first",
    }
    assert not any(text in json.dumps(made.document()) for text in ("hid#den", "hidden-too", "hidden-as-well"))


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("xx-example/data/core", "xxx/example/data/core", "pilot phase"),
        ("xx-example/data/core", "xxx.example.data.core", "pilot phase"),
        ("xx-example/data/core", "xx-example/core", "no level data"),
        ("xx-example/data/core", "example/data/core", "no centre-id"),
        ("xx-example/data/core", "xx-example/data/secret", "no topic of data"),
        ("urn:wmo:md:xx-example:synop", "urn:x-wmo:md:xx-example:synop", "no metadata id"),
    ],
)
def test_datasets_that_can_not_be_published_are_reasons(old: str, new: str, part: str) -> None:
    made = imported(box=BOX, synop=DATASET.replace(old, new))
    assert [made.publishers, made.commands, made.feeds] == [[], [], []]
    assert any(part in why for why in reasons(made).values()), made.no_equivalent


def test_the_centre_of_the_topic_counts() -> None:
    made = imported(box=BOX, synop=DATASET.replace("centre_id: xx-example", "centre_id: yy-other"))
    assert made.publishers[0]["centre"] == "xx-example"
    assert "names another centre" in reasons(made)["wis2box.centre_id: yy-other"]


@pytest.mark.parametrize("topic", ["xx-example.data.core.weather", "origin/a/wis2/xx-example/data/core/weather"])
def test_topics_have_two_notations_more(topic: str) -> None:
    text = DATASET.replace("xx-example/data/core/weather/surface-based-observations/synop", topic)
    assert [one["topic"] for one in imported(box=BOX, synop=text).publishers] == ["core/weather"]


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("  country: xxx\n", "", "the file states no wis2box.country"),
        ("country: xxx", "country: int", "the file states no wis2box.country"),
        ("    email: met@example.org\n", "", "the file states no contact.email"),
        ("begin: 2021-11-29", "begin: null", "the file states no identification.extents.temporal.begin"),
        ("begin: 2021-11-29", "begin: yesterday", "is no date"),
        ("[synop, surface, land]", "[synop]", "3 to 50 keywords"),
        ("-10.5, -20, 30, 40", "-180, -90, 190, 90", "west, south, east and north"),
        ("-10.5, -20, 30, 40", "a, b, c, d", "no four numbers"),
        ("-10.5, -20, 30, 40", "1", "no four numbers"),
    ],
)
def test_a_record_without_its_facts_is_left_to_the_user(old: str, new: str, part: str) -> None:
    made = imported(box=BOX, synop=DATASET.replace(old, new))
    assert [(one["publisher"], one["dataset"]) for one in made.publishers] == [("synop", None)]
    why = reasons(made)["metadata.identifier: urn:wmo:md:xx-example:synop"]
    assert part in why
    assert "downburst publishers describe synop" in why
    assert len(made.commands) == 2


def test_recommended_data_and_their_licence_are_kept() -> None:
    text = DATASET.replace("/core/", "/recommended/").replace(
        "  rights: Some rights\n", "  license: {name: Ours, url: 'https://example.org/licence'}\n"
    )
    made = imported(box=BOX, synop=text)
    assert made.publishers[0]["topic"].startswith("recommended/")
    assert made.commands[-1].endswith(" --license https://example.org/licence")


def test_defaults_of_wis2box_count_and_addresses_within_it_are_advised_against() -> None:
    made = imported(box="WIS2BOX_DATADIR=/data", synop=DATASET)
    (publisher,) = made.publishers
    assert publisher["broker"] == {
        "url": "mqtt://mosquitto",
        "user": "wis2box",
        "mqtt": 5,
        "password_from": "the default of wis2box for WIS2BOX_BROKER_PASSWORD",
        "password_file": "wis2box-mosquitto.password",
    }
    assert publisher["base_url"] == "http://localhost"
    assert ["mosquitto is a name" in publisher["advice"][0], "no public address" in publisher["advice"][1]] == [
        True,
        True,
    ]


def test_an_external_broker_has_the_user_of_its_address() -> None:
    box = "WIS2BOX_BROKER_PASSWORD=internal\nWIS2BOX_BROKER_PUBLIC=mqtts://out:hidden@broker.example\n"
    (publisher,) = imported(box=box, synop=DATASET).publishers
    assert (publisher["broker"]["user"], publisher["broker"]["password_from"]) == ("out", "box:2 (in the address)")


def test_a_broker_that_can_not_be_named_is_one_reason() -> None:
    made = imported(box="WIS2BOX_BROKER_PUBLIC=amqps://a:hidden@broker.example\n", synop=DATASET)
    assert made.publishers == []
    assert "no address of a broker" in reasons(made)["WIS2BOX_BROKER_PUBLIC=amqps://…@broker.example"]


def test_parts_of_a_wis2box_say_which_file_is_missing() -> None:
    topic = "topic_hierarchy: xx-example/data/core/weather/surface-based-observations/synop"
    assert "give wis2box.env too" in reasons(imported(synop=DATASET))[topic]
    mappings = "data:\n  xx-example.data.core.weather.surface-based-observations.synop:\n    plugins: {}\n"
    dotted = topic.replace("/", ".")
    assert "metadata control file" in reasons(imported(box=BOX, mappings=mappings))[dotted]
    without = DATASET.replace(
        "  topic_hierarchy: xx-example/data/core/weather/surface-based-observations/synop\n", ""
    )
    assert "no wis2box.topic_hierarchy" in str(reasons(imported(box=BOX, synop=without)))


MAPPINGS = """\
data:
  xx-example.data.core.weather.surface-based-observations.synop:
    plugins:
      csv:
        - plugin: wis2box.data.csv2bufr.ObservationDataCSV2BUFR
          template: aws
          notify: true
          file-pattern: '^.*\\.csv$'
      grib2:
        - {plugin: wis2box.data.universal.UniversalData, notify: true, file-pattern: '^a.*\\.grib2$'}
        - {plugin: wis2box.data.universal.UniversalData, notify: true, file-pattern: '^b.*\\.grib2$'}
        - {plugin: wis2box.data.universal.UniversalData, notify: true, file-pattern: '*'}
        - {plugin: our.own.Plugin, notify: false, buckets: [incoming], speed: 3}
"""


def test_a_file_of_mappings_completes_the_dataset_of_its_topic() -> None:
    start, end = DATASET.index("  data_mappings:"), DATASET.index("mcf:")
    made = imported(mappings=MAPPINGS, synop=DATASET[:start] + DATASET[end:], box=BOX)
    (publisher,) = made.publishers
    assert publisher["pattern"] == r"(?:^a.*\.grib2$)|(?:^b.*\.grib2$)"
    assert publisher["media_type"] == "application/bufr", "of the first one that announces: csv becomes BUFR"
    found = reasons(made)
    assert "data are not converted" in found["plugins.csv: wis2box.data.csv2bufr.ObservationDataCSV2BUFR"]
    assert "data are not converted" in found["template: aws"]
    assert "object store" in found["buckets: incoming"]
    assert found["speed: 3"] == "no setting of a hub corresponds to it"
    assert "no regular expression" in found["file-pattern: *"]
    assert "programs do not run within the hub" in found["plugins.grib2: our.own.Plugin"]


def test_patterns_that_are_too_long_announce_all() -> None:
    made = imported(box=BOX, synop=DATASET.replace("'^.*\\.bufr4$'", f"'{'a' * 600}'", 1))
    assert made.publishers[0]["pattern"] == ".*"
    assert any("too long" in why for why in reasons(made).values())


def test_namesakes_have_numbers_and_words_of_the_shell_are_quoted() -> None:
    other = DATASET.replace("xx-example", "yy-example").replace("Example Met", "Example $(reboot); 'Met'")
    made = imported(box=BOX, synop=DATASET, other=other)
    assert [one["publisher"] for one in made.publishers] == ["synop", "synop-2"]
    assert """'Example $(reboot); '"'"'Met'"'"''""" in made.commands[-1]
