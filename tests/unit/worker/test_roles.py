"""Differences between the agent of a sender and that of the hub."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from downburst.bus.local import LocalBus
from downburst.domain.events import FaultSeen, NodeChanged
from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst.live.state import LiveState
from downburst_worker.reporter import Reporter
from downburst_worker.roles import HubRole, Role, SenderRole
from downburst_worker.shared import Shared

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("sender", "published"), [(False, ["NodeChanged", "FaultSeen"]), (True, ["FaultSeen"])])
async def test_that_a_senders_node_runs_is_told_by_its_beats_and_not_by_the_bus(
    ledger: Ledger, clock: FakeClock, *, sender: bool, published: list[str]
) -> None:
    bus, live = LocalBus(), LiveState()
    seen = bus.subscribe(NodeChanged, FaultSeen)
    role: Role = SenderRole(ledger, name="one", address="one:1") if sender else HubRole(ledger)
    reporter = Reporter(Shared(ledger, bus, live, clock), role)
    reporter.say(NodeChanged(AT, running=False, restarts=0, reason="stopped"))
    await reporter.fault("the disk is slow")
    assert [type(await seen.next()).__name__ for _ in published] == published
    assert [fault.sentence for fault in await ledger.read(lambda tx: tx.measured.faults.recent())] == [
        "the disk is slow"
    ]


async def test_a_sender_joins_with_its_certificate_and_the_hubs_own_node_at_once(
    ledger: Ledger, tmp_path: Path
) -> None:
    async def ask(do: str, **fields: object) -> dict[str, str]:
        assert (do, fields) == ("sender-key", {"data_dir": str(tmp_path)})
        return {"public_key": "04"}

    with ledger.transaction() as tx:
        tx.fleet.senders.register("one", address="one:1", public_key="04")
        tx.fleet.senders.certify("one", "04", certificate="c", authority="a")
    sender = SenderRole(ledger, name="one", address="one:1")
    joined = await sender.joined(ask, str(tmp_path))
    assert joined == {"sender": {"address": "one:1", "certificate": "c", "authority": "a"}}
    assert await HubRole(ledger).joined(ask, str(tmp_path)) == {}
