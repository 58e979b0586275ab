"""An error that no route expects ends only its own request."""

import pytest

from downburst.supervision import FAULTS
from unit.api.conftest import Asked


async def test_a_request_that_meets_an_unknown_error_is_answered_and_the_next_one_too(
    hub: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    with monkeypatch.context() as patch:
        patch.setattr("downburst.ledger.repositories.feeds.Feeds.all", fail)
        body = await hub.problem("GET", "/v1/feeds", 500, "error")
    assert "KeyError" in body["detail"]
    assert [fault.handler for fault in FAULTS.all()] == ["api.request"]
    assert await hub.ask("GET", "/v1/feeds") == []
