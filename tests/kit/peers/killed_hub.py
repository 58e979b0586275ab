"""A hub in a process of its own that works towards a wish, and may kill itself by SIGKILL at a request.

    python -m kit.peers.killed_hub PLAN.json

It goes on from the records in its folder, and ends with 0 when the wish is fulfilled.
"""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from downburst.domain.ordering.providers import Provider
from downburst_circuits.nsi.order import Standing
from downburst_circuits.nsi.record import Goal
from downburst_circuits.nsi.refusals import Problem
from downburst_circuits.nsi.transport import Exchange, Posted, http_exchange
from downburst_circuits.nsi.words import Criteria
from kit.peers.hub import CIRCUIT, Hub


@dataclass(frozen=True)
class Plan:
    """The wish, and the moment of the kill."""

    provider: Provider
    folder: Path
    criteria: Criteria
    capacity_mbps: int | None
    """The rate to be in service; None: the circuit is to be given back."""
    kill_at: int = 0
    """The number of the request; questions do not count. 0: never."""
    kill_after_s: float | None = None
    """Seconds after it was sent; None: when its answer has arrived, which nobody reads."""


@dataclass
class Deadly:
    """The way to the provider."""

    way: Exchange
    plan: Plan
    sent: int = 0

    async def post(self, action: str, body: bytes) -> Posted | Problem:
        self.sent += "query" not in action
        if self.sent != self.plan.kill_at or "query" in action:
            return await self.way.post(action, body)
        posting = asyncio.create_task(self.way.post(action, body))
        await asyncio.wait([posting], timeout=self.plan.kill_after_s)
        sys.stdout.write(f"killed at {action}\n")
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")


async def work(plan: Plan) -> None:
    """Fulfils the wish, from whatever the records say."""
    async with http_exchange(plan.provider) as way:
        hub = Hub(plan.provider, Deadly(way, plan), plan.folder)
        if CIRCUIT not in hub.requester.orders:
            await hub.wish(plan.criteria)
        if plan.capacity_mbps is None:
            await _give_back(hub)
        else:
            await _serve(hub, plan.capacity_mbps)


async def _give_back(hub: Hub) -> None:
    if hub.order.serving.goal is not Goal.END:
        await hub.cancel()
    await hub.until_standing(Standing.ENDED)


async def _serve(hub: Hub, capacity_mbps: int) -> None:
    await hub.until("service", lambda: hub.is_(Standing.ACTIVE) or hub.is_(Standing.REPLACED))
    one = hub.order.serving
    is_asked = one.ask is not None or hub.order.replacing is not None
    if one.granted is not None and one.granted.capacity_mbps != capacity_mbps and not is_asked:
        await hub.change(capacity_mbps)
    await hub.until("change", lambda: hub.is_(Standing.REPLACED) or _serves(hub, capacity_mbps))
    if hub.is_(Standing.REPLACED):
        await hub.switch()
    await hub.until("only one reservation", lambda: _serves(hub, capacity_mbps) and len(hub.known()) == 1)


def _serves(hub: Hub, capacity_mbps: int) -> bool:
    found = hub.verdict()
    return (
        found.standing is Standing.ACTIVE
        and found.granted is not None
        and found.granted.capacity_mbps == capacity_mbps
        and hub.order.serving.ask is None
    )


def main() -> None:
    """Reads the plan that the command line names."""
    plan = TypeAdapter(Plan).validate_python(json.loads(Path(sys.argv[1]).read_text()))
    asyncio.run(work(plan))


if __name__ == "__main__":
    main()
