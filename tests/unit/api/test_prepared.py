"""The first request after a start: the app has built its routes before."""

from pathlib import Path

import httpx
import pytest
from pydantic import TypeAdapter

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app, prepare
from factories import AUTHORIZATION, runtime


async def test_the_first_request_builds_no_routes(
    tmp_path: Path, ledger: Ledger, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, _ = runtime(tmp_path / "hub", ledger, clock)
    app = prepare(create_app(made))
    built: list[object] = []
    before = TypeAdapter.__init__

    def counted(self: TypeAdapter[object], *given: object, **named: object) -> None:
        built.append(given)
        before(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(TypeAdapter, "__init__", counted)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=AUTHORIZATION) as client:
        for path in ("/v1/calendar", "/v1/circuits", "/v1/feeds"):
            assert (await client.get(path)).status_code == 200
    assert built == []
