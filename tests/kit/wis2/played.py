"""The routes of bridges with answers that are the same in every run."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from downburst.domain.bridges import CentreDay, Hole, Last, Notice, PassedOver, SourceNow, Standing, State
from downburst.foundation.clock import Clock
from downburst.ledger import Ledger
from downburst.live.state import LiveState

URL = "mqtts://globalbroker.example"
SOURCE = {
    "bridge": "dwd",
    "feed": "NGRID",
    "brokers": [{"url": URL}, {"url": "wss://second.example/mqtt", "user": "unl", "password": "secret"}],
    "topics": ["cache/a/wis2/de-dwd/data/core/#"],
    "bytes_per_day": 20_000_000_000,
}


async def play_bridges(ask: Callable[..., Awaitable[Any]], ledger: Ledger, live: LiveState, clock: Clock) -> None:
    """Adds a source at which something is held, something failed and something is waiting; removes it."""
    await ask("POST", "/v1/bridges", body=SOURCE)
    _fill(ledger, clock)
    live.bridges["dwd"] = _now(clock)
    await ask("GET", "/v1/bridges")
    await ask("GET", "/v1/bridges/{bridge}", bridge="dwd")
    for what in ("failed", "centres", "passed-over", "holes"):
        await ask("GET", f"/v1/bridges/{{bridge}}/{what}", bridge="dwd")
    await ask("POST", "/v1/bridges/{bridge}/failed/retry", bridge="dwd")
    await ask("PATCH", "/v1/bridges/{bridge}", bridge="dwd", body={"enabled": False})
    await ask("DELETE", "/v1/bridges/{bridge}", bridge="dwd")
    del live.bridges["dwd"]


def _fill(ledger: Ledger, clock: Clock) -> None:
    now = clock.now()
    last = Last("31e9d66a-cd83-4174-9429-b932f1abe1be", ("de-dwd/1", "ab" * 64), now, State.COMING)
    topic = "cache/a/wis2/de-dwd/data/core/weather/surface-based-observations/synop"
    notice = Notice("dwd", "de-dwd/1", last, topic, b"{}", now, "de-dwd", 85_000)
    waiting = replace(notice, data_id="de-dwd/2", last=replace(last, state=State.WAITING))
    with ledger.transaction() as tx:
        tx.wis2.notices.take([notice, waiting, replace(notice, data_id="de-dwd/3")])
        tx.wis2.notices.settle(notice, State.FAILED, reason="the server answers with status 404")
        tx.wis2.days.add([CentreDay("dwd", "de-dwd", now.date(), products=2, bytes=170_000, copies=2, failed=1)])
        tx.wis2.holes.add(Hole("dwd", URL, now, now, "the broker did not keep the session"), filled=True)


def _now(clock: Clock) -> SourceNow:
    standing = Standing(clock.now(), session_present=True, bound=1, last_at=clock.now(), fault="")
    now = SourceNow({URL: standing})
    sentence = "a notification of this data id with the same or a newer pubtime came before"
    now.passed_over.append(PassedOver(clock.now(), URL, "cache/a/wis2/de-dwd/data/core/weather", "older", sentence))
    return now
