"""The application over a real ledger and a fake node, called without a network."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from downburst.bus.local import BusSubscription
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_api.runtime import Runtime
from factories import AUTHORIZATION, NodeStandIn, runtime


@dataclass
class Asked:
    client: httpx.AsyncClient
    runtime: Runtime
    node: NodeStandIn
    events: BusSubscription

    async def ask(self, method: str, path: str, expect: int = 200, **request: Any) -> Any:
        answer = await self.client.request(method, path, **request)
        assert answer.status_code == expect, answer.text
        return answer.json() if answer.content else None

    async def problem(self, method: str, path: str, status: int, code: str, **request: Any) -> dict[str, Any]:
        answer = await self.client.request(method, path, **request)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        body: dict[str, Any] = answer.json()
        assert (body["status"], body["code"]) == (status, code)
        assert body["type"]
        assert body["title"]
        assert "\n" not in body["detail"]
        return body


@pytest.fixture
async def hub(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> AsyncIterator[Asked]:
    made, node = runtime(tmp_path / "hub", ledger, clock, max_product_bytes=1_000_000)
    transport = httpx.ASGITransport(create_app(made), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://hub", headers=AUTHORIZATION) as client:
        yield Asked(client, made, node, made.bus.subscribe())
