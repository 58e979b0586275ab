"""The offset of a sender's clock from the hub's, measured by way of the ledger's server."""

from datetime import UTC, datetime, timedelta
from typing import Any

from downburst.domain.senders import HUB_CLOCK, ClockStanding
from downburst_worker.reference_clock import ReferenceClock

AT = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)


class Clocks:
    """A ledger's clocks, with standings that a test sets."""

    def __init__(self, own: ClockStanding | None) -> None:
        self.own = own
        self.kept: dict[str, ClockStanding] = {}
        self.measured = self
        self.clocks = self

    def compare(self) -> ClockStanding | None:
        return self.own

    def keep(self, name: str, standing: ClockStanding) -> None:
        self.kept[name] = standing

    def of(self, name: str) -> ClockStanding | None:
        return self.kept.get(name)

    async def read(self, work: Any, *, patience_s: float) -> Any:
        assert patience_s == 0
        return work(self)

    write = read


class Node:
    """Records the jobs that a node is given."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    async def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        self.told.append({"do": do, **fields})
        return {}


async def test_a_sender_is_told_what_lies_between_its_clock_and_the_hubs_and_both_errors() -> None:
    ledger, node = Clocks(ClockStanding(1_000, 200, AT)), Node()
    ledger.kept[HUB_CLOCK] = ClockStanding(-500, 100, AT - timedelta(seconds=30))
    clock = ReferenceClock(ledger, sender="one")  # type: ignore[arg-type]
    await clock.tend(node.ask)
    assert node.told == [{"do": "clock", "ahead_us": 1_500, "bound_us": 200 + 100 + 30 * 100}]
    assert ledger.kept["one"] == ledger.own
    await clock.tend(node.ask)
    assert len(node.told) == 1, "not due"
    clock.again()
    await clock.tend(node.ask)
    assert len(node.told) == 2, "a node that began anew is told at once"


async def test_the_hub_keeps_its_own_and_a_sender_waits_for_that() -> None:
    ledger, node = Clocks(ClockStanding(5, 2, AT)), Node()
    await ReferenceClock(ledger, sender="one").tend(node.ask)  # type: ignore[arg-type]
    assert node.told == []
    await ReferenceClock(ledger, sender=None).tend(node.ask)  # type: ignore[arg-type]
    assert ledger.kept[HUB_CLOCK] == ledger.own
    assert node.told == [], "the hub is the reference"


async def test_a_ledger_without_a_server_compares_nothing() -> None:
    ledger, node = Clocks(None), Node()
    await ReferenceClock(ledger, sender=None).tend(node.ask)  # type: ignore[arg-type]
    assert (ledger.kept, node.told) == ({}, [])
