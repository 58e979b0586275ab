"""The API handles every request that its description allows or forbids; schemathesis generates both."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.result import Ok

from downburst.domain.feeds import Feed
from downburst.domain.sites import Site
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.supervision.probes import Probes
from downburst_api.app import create_app
from downburst_api.http.openapi import EXAMPLES
from factories import AUTHORIZATION, runtime

SEED = int(os.environ.get("DOWNBURST_SEED", "1"))


@pytest.fixture
def app(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> FastAPI:
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID"))
        tx.sites.add(Site("unl.edu"))
    made, _ = runtime(tmp_path / "hub", ledger, clock)
    # On a busy machine the requests take longer than the limit of a round of probes.
    made.probes = Probes({}, now_s=clock.monotonic_s)
    asyncio.run(made.probes.look())
    return create_app(made)


@pytest.mark.parametrize(
    ("mode", "most"),
    [
        (GenerationMode.POSITIVE, 1),
        pytest.param(GenerationMode.POSITIVE, 8, marks=pytest.mark.all),
        pytest.param(GenerationMode.NEGATIVE, 8, marks=pytest.mark.all),
    ],
)
def test_every_request_is_answered_or_refused_with_a_problem(app: FastAPI, mode: GenerationMode, most: int) -> None:
    # The live stream never ends, so its answer cannot be awaited.
    api = schemathesis.openapi.from_asgi("/openapi.json", app).exclude(path="/v1/events")
    print(f"again: DOWNBURST_SEED={SEED} pytest tests/unit/api/test_described.py")
    played = 0
    for found in api.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @seed(SEED)
        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=most, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def play(case: Any) -> None:
            _check(case.call(headers=AUTHORIZATION))

        # Operations whose input cannot be incomplete or invalid have no case to generate.
        with suppress(Unsatisfiable):
            play()
            played += 1
    assert played >= 10


def test_every_example_is_a_request_that_may_be_sent(app: FastAPI) -> None:
    described = app.openapi()
    for (method, path), example in EXAMPLES.items():
        content = described["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]
        assert content["example"] == example
        schema = content["schema"] | {"components": described["components"]}
        assert [error.message for error in jsonschema_rs.validator_for(schema).iter_errors(example)] == [], path
    posts = [operations["post"] for path, operations in described["paths"].items() if "post" in operations]
    assert all(sum(one["name"] == "Idempotency-Key" for one in post["parameters"]) == 1 for post in posts)


def _check(answer: schemathesis.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == ["application/problem+json"]
        problem = answer.json()
        assert {"type", "title", "status", "detail", "code"} <= problem.keys()
        assert problem["status"] == answer.status_code
