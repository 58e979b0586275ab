"""The contract of the API: every answer is typed, has an example, and equals its recording byte for byte."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_api.border.route_rules import RULES
from downburst_contract.overview import Overview
from factories import runtime
from kit.played_api import played, shown
from unit.api import write_contract
from unit.api.client_calls import CALLS, api_routes, calls_text, method_of

AGAIN = "; run: cd tests && ../.venv/bin/python -m unit.api.write_contract"
PAGES = {"GET /", "GET /docs", "GET /openapi.json", "GET /v1/session/oidc", "GET /v1/session/oidc/callback"}
"""For browsers alone: they are no part of the contract."""

NO_JSON = {
    "/metrics": "text for Prometheus",
    "/v1/events": "a stream of events",
    "/v1/circuits.ics": "a calendar of its own format",
    "/wis2/{publisher}/{epoch}/{name}": "the bytes of a product",
    "/wis2/{publisher}/record.json": "a document of another standard",
}


@pytest.fixture
def app(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> FastAPI:
    return create_app(runtime(tmp_path / "hub", ledger, clock)[0])


async def test_every_answer_is_as_it_was_recorded(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = await played(tmp_path / "hub", ledger, clock, monkeypatch)
    recorded = json.loads(write_contract.ANSWERS.read_text())
    assert [one["route"] for one in answers] == [one["route"] for one in recorded]
    for answer, before in zip(answers, recorded, strict=True):
        assert answer == before, answer["route"] + AGAIN
    pages = {*PAGES, *(f"GET {path}" for path in NO_JSON)}
    assert {one["route"] for one in answers} == {f"{method} {path}" for method, path in RULES} - pages
    overview = next(shown(one) for one in answers if one["route"] == "GET /v1/overview")
    kept = Overview.model_validate(overview).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert _leaves(kept) == _leaves(overview), "the shape of the overview lacks something that is sent"
    assert json.loads(write_contract.EXAMPLES.read_text()) == write_contract.examples(answers), AGAIN


def test_no_route_answers_something_without_a_shape(app: FastAPI) -> None:
    assert len(api_routes(app)) == len(RULES) - len(PAGES)
    untyped = [
        route.path
        for route in api_routes(app)
        if route.path not in NO_JSON and route.status_code != 204 and not _is_typed(route.response_model)
    ]
    assert untyped == []


def test_the_description_has_an_example_of_each_answer_and_says_how_to_sign_in(app: FastAPI) -> None:
    described = app.openapi()
    assert set(described["components"]["securitySchemes"]) == {"token", "session"}
    for route in api_routes(app):
        operation = described["paths"][route.path_format][method_of(route).lower()]
        rule = RULES[method_of(route), route.path]
        assert bool(operation["security"]) == (rule.scope is not None or rule.known)
        for status, answer in operation["responses"].items():
            for content in answer.get("content", {}).values() if status.startswith("2") else ():
                assert "example" in content, f"{route.path}{AGAIN}"
                schema = content.get("schema", {}) | {"components": described["components"]}
                errors = jsonschema_rs.validator_for(schema).iter_errors(content["example"])
                assert [error.message for error in errors] == [], route.path


def test_the_committed_description_is_that_of_the_routes(app: FastAPI) -> None:
    assert write_contract.document(app) == write_contract.DOCUMENT.read_text(), f"docs/openapi.json is stale{AGAIN}"


def test_the_client_has_the_routes_of_the_hub(app: FastAPI) -> None:
    assert write_contract.formatted(calls_text(app)) == CALLS.read_text(), f"the client's calls are stale{AGAIN}"


def _is_typed(shape: Any) -> bool:
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        return True
    schema = TypeAdapter(shape).json_schema() if shape is not None else {}
    return schema.get("type") == "array" and "$ref" in schema["items"]


def _leaves(value: Any) -> Any:
    """A copy that compares numbers by value and times by instant, because the overview has its own serializer."""
    if isinstance(value, dict):
        return {name: _leaves(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_leaves(one) for one in value]
    return value.replace("+00:00", "Z") if isinstance(value, str) else value
