"""Records of discovery."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from contract.test_ledger_publishers import PUBLISHER
from downburst.domain.bridges.datasets import Dataset
from downburst.foundation.errors import BadInput
from downburst.wis2.records import record_of

DATASET = Dataset(
    "Surface observations of the Caribbean",
    "Observations of land stations and ships, in alphanumeric code.",
    "Unidata",
    "support@unidata.example",
    "https://unidata.example",
    "USA",
    ("synop", "observations", "surface"),
    datetime(2026, 11, 1, tzinfo=UTC),
)


def test_a_record_names_its_dataset_its_topic_and_its_place() -> None:
    found = json.loads(record_of(PUBLISHER, replace(DATASET, bounds=(-90, 5, -55, 30)), DATASET.begin))
    assert found["id"] == "urn:wmo:md:us-unidata:synop"
    assert found["properties"]["wmo:dataPolicy"] == "core"
    (link,) = found["links"]
    assert link["channel"] == "cache/a/wis2/us-unidata/data/core/weather/surface-based-observations/synop"
    assert found["geometry"]["coordinates"][0][0] == [-90, 5]


def test_recommended_data_are_at_their_origin_and_have_a_licence() -> None:
    recommended = replace(PUBLISHER, subtopic="recommended/weather/prediction")
    found = json.loads(
        record_of(recommended, replace(DATASET, license_url="https://unidata.example/l"), DATASET.begin)
    )
    assert [link["rel"] for link in found["links"]] == ["items", "license"]
    assert found["links"][0]["channel"].startswith("origin/")


@pytest.mark.parametrize(
    "wrong", [{"title": " "}, {"keywords": ("a",)}, {"bounds": (10, 0, 5, 5)}, {"description": "x" * 5_000}]
)
def test_records_that_no_catalogue_would_take_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        replace(DATASET, **wrong)
