"""The Python client: its examples run against a hub, it loads no server, and its errors have the hub's sentences."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

import downburst_client
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from downburst_client import AsyncHub, BadAddress, BrokenOff, Hub, Problem, Unreachable, calls
from downburst_contract.feeds import FeedNew
from factories import LOCAL_TOKEN, runtime

PAGE = Path(__file__).parents[3] / "docs/python-client.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


class InProcess(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Carries requests to an application that runs on a loop of its own."""

    def __init__(self, app: Any) -> None:
        self._inner = httpx.ASGITransport(app)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run_coroutine_threadsafe(self._answer(request), self._loop).result(30)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._answer(request), self._loop))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        answer = await self._inner.handle_async_request(asked)
        return httpx.Response(answer.status_code, headers=answer.headers, content=await answer.aread())

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def transport(tmp_path: Path, ledger: Ledger, clock: FakeClock) -> Iterator[InProcess]:
    made = InProcess(create_app(runtime(tmp_path / "hub", ledger, clock)[0]))
    yield made
    made.end()


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_of_the_page_runs(
    example: str, transport: InProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Hub("http://hub", token=LOCAL_TOKEN, transport=transport) as hub:
        hub.send(calls.add_feed(FeedNew(feed="NGRID")))
    monkeypatch.setattr(downburst_client, "Hub", partial(Hub, transport=transport))
    monkeypatch.setattr(downburst_client, "AsyncHub", partial(AsyncHub, transport=transport))
    code = example.replace("dba_of-your-hub", LOCAL_TOKEN)
    exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out or "list_sites" in code


async def test_both_clients_read_lists_page_by_page(transport: InProcess) -> None:
    with Hub("http://hub", token=LOCAL_TOKEN, transport=transport) as hub:
        for name in ("A", "B", "C"):
            hub.send(calls.add_feed(FeedNew(feed=name)))
        assert len(hub.send(calls.list_feeds(limit=2))) == 2
        assert [feed.feed for feed in hub.every(calls.list_feeds(limit=2))] == ["A", "B", "C"]
        assert hub.send(calls.remove_feed("B")) is None
    async with AsyncHub("http://hub", token=LOCAL_TOKEN, transport=transport) as other:
        assert [feed.feed async for feed in other.every(calls.list_feeds(limit=1))] == ["A", "C"]


def test_a_change_of_what_was_changed_meanwhile_is_a_problem(transport: InProcess) -> None:
    with Hub("http://hub", token=LOCAL_TOKEN, transport=transport) as hub:
        hub.send(calls.add_feed(FeedNew(feed="A")))
        with pytest.raises(Problem) as refused:
            hub.send(calls.remove_feed("A", if_match='"stale"'))
        assert (refused.value.status, refused.value.is_problem_document) == (412, True)
        assert "was changed by another request" in refused.value.detail


@pytest.mark.parametrize(
    ("error", "raised"),
    [(httpx.ConnectError("refused"), Unreachable), (httpx.ReadError("reset"), BrokenOff)],
)
def test_what_breaks_off_is_said(error: Exception, raised: type[Exception]) -> None:
    def fail(_request: httpx.Request) -> httpx.Response:
        raise error

    with Hub("http://hub", transport=httpx.MockTransport(fail)) as hub, pytest.raises(raised, match="http://hub"):
        hub.send(calls.livez())


def test_a_bad_address_and_a_stranger_are_told_apart() -> None:
    with Hub("nonsense") as hub, pytest.raises(BadAddress):
        hub.send(calls.livez())
    stranger = httpx.MockTransport(lambda _request: httpx.Response(404, text="<html>"))
    with (
        Hub("http://other", transport=stranger) as hub,
        pytest.raises(Problem, match="is this a Downburst hub") as no,
    ):
        hub.send(calls.livez())
    assert not no.value.is_problem_document


def test_the_client_loads_no_server_and_no_database() -> None:
    code = "import sys, downburst_client.calls; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"fastapi", "starlette", "sqlalchemy", "numpy", "downburst_api", "typer"} & set(loaded)
