"""The node's counts reach the ledger once, however long the ledger's server is away."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from downburst.domain.feeds import TrafficMinute
from downburst.domain.plans import LegCounters, Transport
from downburst.domain.receipts import LogHead
from downburst.domain.relays import Relay, Segment, Tunnel
from downburst.domain.tcp.profiles import ProfileMode, TcpKnobs, TcpProfile, TcpTrial, TrialStep
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import DiskFull, DownburstError, LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst.ledger.repositories.audit import Changes
from downburst.supervision import FAULTS
from downburst_latency.service import LatencyService
from downburst_worker.ledger_writer import TRIALS_WAITING, TUNNELS_WAITING, LedgerWriter
from factories import SOME_TIME

T = TypeVar("T")
SENT = LegCounters("NGRID", 1, 4, Transport.UNICAST, 2, 1, 10, 20, 3, 1, 10)
ARRIVED = TrafficMinute("NGRID", 5, 1, 100, 100)


class Away:
    """A ledger whose server can be away."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.trouble: DownburstError | None = None

    async def write(self, work: Callable[[Transaction], T], **_: Any) -> T:
        if self.trouble is not None:
            raise self.trouble
        return await self.ledger.write(work)


class Stage:
    def __init__(self, ledger: Ledger, clock: FakeClock, directory: Path) -> None:
        self.away = Away(ledger)
        self.directory = directory
        self.loaded: list[str] = []
        self.put_aside: list[str] = []
        latency = LatencyService(self.away, clock=clock)  # type: ignore[arg-type]
        self.writer = LedgerWriter(
            self.away,  # type: ignore[arg-type]
            batch_dir=directory,
            load_batch=latency.load,
            loaded=self._loaded,
            put_aside=self._put_aside,
        )

    def batch(self, name: str) -> Path:
        report = {"feed": "NGRID", "epoch": "1", "site": "a", "settled_to": 4, "stored": 1, "stored_bytes": 40}
        report |= {"duplicates": 0, "rejected": 0, "expired": 0}
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps({"batch": name, "sketches": [], "exceptions": [], "settled": [report]}))
        return path

    async def _loaded(self, batch: str) -> None:
        self.loaded.append(batch)
        (self.directory / f"{batch}.json").unlink()

    async def _put_aside(self, path: Path) -> None:
        self.put_aside.append(path.name)


@pytest.fixture
def stage(ledger: Ledger, clock: FakeClock, tmp_path: Path) -> Stage:
    directory = tmp_path / "batches"
    directory.mkdir()
    return Stage(ledger, clock, directory)


async def test_counts_of_an_outage_are_added_up_and_kept_once(stage: Stage, ledger: Ledger) -> None:
    stage.away.trouble = LedgerAway("away")
    for head in (7, 9, 8):
        await stage.writer.count([SENT], [ARRIVED], [LogHead("NGRID", "5", head)])
        await stage.writer.catch_up()
    assert await ledger.read(lambda tx: tx.planning.legs.counters()) == []
    stage.away.trouble = None
    for _ in range(2):
        await stage.writer.catch_up()
    counted, minutes, heads = await ledger.read(
        lambda tx: (tx.planning.legs.counters(), tx.measured.traffic.minutes(), tx.measured.log_heads.all())
    )
    assert counted == [replace(SENT, products=3, product_bytes=30, egress_bytes=60, repair_bytes=9, control_bytes=3,
                               unicast_equivalent_bytes=30)]  # fmt: skip
    (sent,) = await ledger.read(lambda tx: tx.measured.egress.quarters(since_minute=0))
    assert (sent.egress_bytes, sent.unicast_equivalent_bytes) == (60, 30)
    assert minutes == [replace(ARRIVED, products=3, bytes=300)]
    assert heads == [LogHead("NGRID", "5", 9)]


async def test_counts_that_a_full_disk_refused_come_with_the_next(stage: Stage, ledger: Ledger) -> None:
    stage.away.trouble = DiskFull("full")
    with pytest.raises(DiskFull):
        await stage.writer.count([SENT])
    stage.away.trouble = None
    await stage.writer.count([SENT])
    assert (await ledger.read(lambda tx: tx.planning.legs.totals())).products == 2


async def test_batches_of_an_outage_lie_there_until_they_are_loaded(stage: Stage, ledger: Ledger) -> None:
    stage.away.trouble = LedgerAway("away")
    for name in ("b1", "b2"):
        await stage.writer.take_batch(stage.batch(name))
    assert stage.loaded == []
    stage.away.trouble = None
    for _ in range(2):
        await stage.writer.catch_up()
    assert stage.loaded == ["b1", "b2"]
    assert [row.stored for row in await ledger.read(lambda tx: tx.measured.settled.all())] == [2]


async def test_what_is_no_batch_is_put_aside(stage: Stage) -> None:
    path = stage.batch("b1")
    path.write_text('{"batch": "b1"')
    await stage.writer.take_batch(path)
    assert (stage.put_aside, path.with_suffix(".bad").exists()) == (["b1.json"], True)
    assert FAULTS.all() == [], "a damaged file is no fault of a handler"


async def test_a_batch_that_no_handler_expects_is_put_aside_and_the_next_is_loaded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = stage.writer._load_batch

    async def overflows(path: Path) -> object:
        if path.stem == "b1":
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        return await load(path)

    monkeypatch.setattr(stage.writer, "_load_batch", overflows)
    for name in ("b1", "b2"):
        stage.batch(name)
    await stage.writer.take_waiting_batches()
    assert (stage.put_aside, stage.loaded) == (["b1.json"], ["b2"])
    assert [fault.what for fault in FAULTS.all()] == ["the batch of receipts b1.json"]


async def test_the_steps_of_a_trial_outlive_an_outage_in_their_order(stage: Stage, ledger: Ledger) -> None:
    await ledger.write(lambda tx: tx.fleet.tcp_profiles.put(TcpProfile("p", "192.0.2.0/24", ProfileMode.LEARN)))
    stage.away.trouble = LedgerAway("away")
    began = TcpTrial("p", TrialStep.BEGAN, TcpKnobs("bbr"), TcpKnobs(), 1, 3, None, None, 0, "why", SOME_TIME)
    for step in (TrialStep.BEGAN, TrialStep.KEPT):
        await stage.writer.keep_trial(replace(began, step=step))
    stage.away.trouble = None
    await stage.writer.catch_up()
    found = await ledger.read(lambda tx: tx.fleet.tcp_profiles.one("p"))
    assert (found.learnt, found.trial) == (TcpKnobs("bbr"), replace(began, step=TrialStep.KEPT))
    steps = await ledger.read(lambda tx: tx.access.audit.page(Changes(kind="TCP profile")))
    assert [one.action for one in steps] == ["trial kept", "trial began", "added"]


async def test_the_log_of_a_relay_outlives_an_outage(stage: Stage, ledger: Ledger) -> None:
    await ledger.write(lambda tx: tx.fleet.relays.put(Relay("campus", "relay.example.edu:7379")))
    segment = Segment(2_000, None, "bbr", 5)
    tunnel = Tunnel("oslo", "192.0.2.9:1", "198.51.100.1:2", "hub:7370", 60.0, 1, 2, 3, segment, segment, ended=True)
    stage.away.trouble = LedgerAway("away")
    await stage.writer.log_tunnels("campus", [tunnel])
    await stage.writer.log_tunnels("gone", [tunnel] * (TUNNELS_WAITING - 1))
    stage.away.trouble = None
    await stage.writer.catch_up()
    found = await ledger.read(lambda tx: tx.fleet.relay_log.newest("campus"))
    assert [one.tunnel for one in found] == [tunnel]


async def test_a_long_outage_keeps_the_newest_steps_of_trials(stage: Stage) -> None:
    stage.away.trouble = LedgerAway("away")
    began = TcpTrial("p", TrialStep.BEGAN, TcpKnobs("bbr"), TcpKnobs(), 1, 3, None, None, 0, "why", SOME_TIME)
    for windows in range(TRIALS_WAITING + 5):
        await stage.writer.keep_trial(replace(began, windows=windows))
    waiting = stage.writer._waiting.trials
    assert (len(waiting), waiting[0].windows, waiting[-1].windows) == (TRIALS_WAITING, 5, TRIALS_WAITING + 4)
