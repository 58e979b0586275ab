"""Recordings of a site's connections at senders: requested over the bus, and merged."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from downburst.bus.local import LocalBus
from downburst.foundation.errors import NodeAway
from downburst.live.traced import TracedSite, TracerQuestion
from downburst_worker.messages.tracer_lines import traced_site
from downburst_worker.remote import tracer as remote
from downburst_worker.remote.answering import answer_for_good
from downburst_worker.remote.tracer import RemoteTracer

Line = dict[str, Any]
WANTED = TracerQuestion("oslo", datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 2, tzinfo=UTC), 50, ("rtt",))
HERE = "192.0.2.1:7370"


async def test_connections_at_senders_are_added_and_asked_for_as_at_the_hub() -> None:
    bus, jobs = LocalBus(), list[Line]()
    async with answering(bus, "one", line("192.0.2.2:7370", since_us=5, missed=2), jobs):
        found = await add(bus, line(HERE, since_us=7), senders=["one"])
    assert [one.local for one in found.connections] == [HERE, "192.0.2.2:7370"]
    assert found.recorded is not None
    assert [moment.microsecond for moment in found.recorded] == [5, 9]
    assert (found.missed_ticks, found.complete, found.unable, found.variables) == (2, True, None, ("rtt",))
    (job,) = jobs
    assert (job["site"], job["points"], job["variables"]) == ("oslo", 50, ["rtt"])
    assert job["to_us"] - job["from_us"] == 86_400_000_000


async def test_a_long_answer_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PIECE", 7)
    bus = LocalBus()
    async with answering(bus, "one", line("192.0.2.2:7370")), answering(bus, "two", line("192.0.2.3:7370")):
        found = await add(bus, line(HERE), senders=["two", "one"])
    assert [one.local for one in found.connections] == [HERE, "192.0.2.2:7370", "192.0.2.3:7370"]


async def test_a_sender_that_does_not_answer_or_has_no_samples_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "ANSWER_S", 0.2)
    bus = LocalBus()
    unable = line("192.0.2.2:7370") | {"unable": "the disk is full"}
    async with answering(bus, "one", unable), answering(bus, "two", None):
        found = await add(bus, line(HERE), senders=["one", "two", "dead"])
    assert found.unable is not None
    assert "the sender dead did not answer" in found.unable
    assert "the sender one: the disk is full" in found.unable
    assert "the sender two: it restarts" in found.unable
    assert not found.complete
    assert len(found.connections) == 2


async def test_without_senders_the_hubs_own_answer_stands() -> None:
    assert await add(LocalBus(), line(HERE), senders=[]) == traced_site(line(HERE))


async def add(bus: LocalBus, own: Line, *, senders: list[str]) -> TracedSite:
    return await RemoteTracer(bus).add(traced_site(own), WANTED, senders=senders)


@asynccontextmanager
async def answering(
    bus: LocalBus, name: str, answer: Line | None, jobs: list[Line] | None = None
) -> AsyncIterator[None]:
    """A sender whose node answers with this line; with None it is away."""

    async def ask(do: str, **job: Any) -> Line:
        assert do == "tracer"
        if jobs is not None:
            jobs.append(job)
        if answer is None:
            raise NodeAway("it restarts")
        return answer

    task = asyncio.create_task(answer_for_good(bus, name, ask))
    await asyncio.sleep(0)
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def line(local: str, *, since_us: int = 6, missed: int = 0) -> Line:
    """A node's answer about one connection."""
    connection = {"local": local, "peer": "192.0.2.9:40000", "role": "session", "samples": [[6, 20_000]]}
    return {
        "unable": None,
        "missed_ticks": missed,
        "damaged": 0,
        "since_us": since_us,
        "until_us": 9,
        "complete": True,
        "variables": ["rtt"],
        "connections": [connection | {"verdict": None, "stalls": []}],
    }
