"""An unknown error is thrown into each handler that the code names: the hub continues, and raises an alarm."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from downburst.domain.alarms import AlarmKind, Receiver, ReceiverKind
from downburst.domain.events import FeedsChanged
from downburst.domain.feeds import Feed
from downburst.foundation.errors import NodeAway
from downburst.settings.alarms import AlarmSettings
from downburst.settings.hub import Settings
from downburst.settings.watch import WatchRule, WatchSettings
from downburst.supervision import FAULTS, tasks
from downburst_app.wiring.hub import Hub
from kit import planted
from kit.handler_outcomes import outcomes

ANSWERS = frozenset({"node.line", "node.event"})


class Planted(Exception):
    """An error that no handler knows."""


async def test_no_handler_lets_an_unknown_error_stop_more_than_one_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = set(outcomes().of("hub", "goes on") - outcomes().alone.keys())
    # A first start without an answer of the node is refused with a sentence, as intended.
    armed, entered_again, enter = wanted - ANSWERS, set[str](), tasks._enter

    def throw(handler: str, work: Callable[[], Any]) -> Any:
        if handler in armed:
            armed.remove(handler)
            raise Planted(handler)
        entered_again.add(handler)
        return enter(handler, work)

    monkeypatch.setattr(tasks, "_enter", throw)
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.05)
    monkeypatch.setattr(tasks, "LONGEST_WAIT_S", 0.05)
    monkeypatch.setattr("downburst_app.wiring.housekeeping.HOUSEKEEPING_S", 0.2)
    async with Hub(_settings(tmp_path)) as hub:
        armed |= ANSWERS
        stop = asyncio.Event()
        running = asyncio.create_task(hub.run_until(stop))
        async with asyncio.timeout(60):
            number = 0
            while armed or wanted - entered_again or await _without_alarm(hub, wanted):
                number += 1
                await _stimulate(hub, tmp_path, number)
                assert not running.done(), "the hub ended"
                print(f"not thrown into: {sorted(armed)}; not entered again: {sorted(wanted - entered_again)}")
                await asyncio.sleep(0.2)
            await hub._watchdogs.probes.look()
        assert hub._watchdogs.probes.failing() == []
        stop.set()
        await asyncio.wait_for(running, 30)
    _print(wanted)


@pytest.mark.parametrize("task", sorted(outcomes().of("hub", "ends")))
def test_a_hub_whose_own_task_fails_ends_with_that_error(task: str, tmp_path: Path) -> None:
    """A supervisor, such as systemd, a container engine or Kubernetes, starts it again."""
    notes = tmp_path / "planted"
    notes.mkdir()
    (notes / "hub.json").write_text(json.dumps({"at_once": [], "later": [], "tasks": [task]}))
    settings = _settings(tmp_path)
    argv = [*planted_command(), "hub", "--data-dir", str(tmp_path / "hub"), "--http", "127.0.0.1:0"]
    environment = os.environ | {"DOWNBURST_NODE": str(settings.node), "PLANTED": str(notes)}
    ended = subprocess.run(
        [*argv, "--sites", "127.0.0.1:0"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode != 0, ended.stderr
    assert (notes / "hub.thrown").read_text().split() == [task]
    assert f"{task} met an unexpected error" in ended.stderr + ended.stdout
    print(f"{task:28} ends with exit code {ended.returncode}")


def planted_command() -> tuple[str, ...]:
    """`downburst`, with planted errors."""
    return sys.executable, planted.__file__, str(Path(sys.executable).parent / "downburst")


async def _without_alarm(hub: Hub, wanted: set[str]) -> set[str]:
    found = await hub._ledger.read(lambda tx: tx.alerting.alarms.newest(limit=1000))
    return wanted - {alarm.subject for alarm in found if alarm.kind is AlarmKind.INTERNAL_FAULT}


async def _stimulate(hub: Hub, directory: Path, number: int) -> None:
    """Some of all events of a hub."""
    feed = Feed(f"F{number}")
    await hub._ledger.write(lambda tx: tx.feeds.add(feed))
    hub._bus.publish(FeedsChanged())
    batch = directory / "hub" / "batches" / f"b{number}.json"
    batch.write_text("{}")
    told = {"event": "batch", "batch": batch.stem, "path": str(batch), "at_us": 1_000_000}
    with suppress(NodeAway):
        await hub._agent._node.request("emit", line=told)
    (directory / "drop" / f"{number}.txt").write_text("x")
    if number == 1:
        receiver = Receiver("ops", ReceiverKind.WEBHOOK, "http://127.0.0.1:1/")
        await hub._ledger.write(lambda tx: tx.alerting.receivers.add(receiver))


def _settings(directory: Path) -> Settings:
    node = directory / "node"
    node.write_text(f"#!/bin/sh\nexec {sys.executable} {Path(__file__).parents[1] / 'kit' / 'fake_node.py'}\n")
    node.chmod(0o755)
    (directory / "drop").mkdir()
    return Settings(
        data_dir=directory / "hub",
        node=node,
        http="127.0.0.1:0",
        sites="127.0.0.1:0",
        outage_hours=1,
        reserve_bytes=0,
        node_answer_s=2,
        watch=WatchSettings(directory=directory / "drop", rules=(WatchRule(match=".*", feed="F1"),)),
        alarms=AlarmSettings(look_s=0.1, heartbeat_s=0, disk_free_share=0),
    )


def _print(wanted: set[str]) -> None:
    by_handler = {fault.handler: fault for fault in FAULTS.all()}
    for name in sorted(wanted):
        print(f"{name:28} set aside, counted {by_handler[name].count}, alarm")
