"""An unknown error in each handler of each process beside a hub: it continues, and an alarm at the hub names both."""

import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kit import planted
from kit.handler_outcomes import outcomes
from kit.kafka import Kafka
from kit.parts_apart import BY_INPUT, COMMANDS, Part, Parts, show, subject
from kit.patience import wait_for
from kit.postgres import Postgres

pytestmark = [pytest.mark.system]


@pytest.fixture
def parts(tmp_path: Path, server: Postgres, broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> Parts:
    scene = Parts(tmp_path, server, broker)
    for name, value in scene.environment.items():
        monkeypatch.setenv(name, value)
    return scene


def test_a_hub_on_brokers_goes_on(parts: Parts) -> None:
    wanted = outcomes().of("hub on Kafka", "goes on")
    parts.hub.prefix = (sys.executable, planted.__file__)
    for apart, handlers in ((False, wanted - HANDS_OVER), (True, HANDS_OVER)):
        parts.plant("hub", handlers)
        parts.leave(services=apart)
        parts.hub.start()
        # If a hub leaves alarms to another process, that process raises them.
        beside = [_unharmed(parts, command) for command in ("alarm-service", "circuit-service") if apart]
        wait_for("all handlers to be entered again", lambda: parts.noted("hub", "again") == handlers, 60)  # noqa: B023
        wait_for("an alarm of each", lambda: parts.alarms() >= handlers, 60)  # noqa: B023
        for part in beside:
            part.stop()
        assert parts.hub.stop() == 0, parts.hub.log()[-4_000:]
    show("hub on Kafka", parts.alarms())


@pytest.mark.long(48)
def test_no_handler_of_a_part_apart_stops_more_than_one_thing(parts: Parts, broker: Kafka) -> None:
    parts.leave(services=True)
    parts.hub.start()
    wanted = {process: outcomes().of(process, "goes on") - outcomes().alone.keys() for process in COMMANDS}
    for process, command in COMMANDS.items():
        parts.plant(command, wanted[process])
    # The fleet starts the sender.
    started = [parts.start(command) for command in COMMANDS.values() if command != "sender"]
    # Armed sooner, the error would hit the first answer of its node, and the sender would not start.
    wait_for("a sender at work", lambda: _run(started) and "agent.changes" in parts.noted("sender", "again"), 90)
    (parts.planted / "armed").touch()
    number = 0

    def thrown_into_all() -> bool:
        nonlocal number
        number += 1
        _run(started)
        _stimulate(parts, broker, number)
        lacking = _lacking(parts, wanted)
        print(f"not thrown into or not entered again: {sorted(lacking)}")
        return not lacking

    wait_for("all handlers to be entered again", thrown_into_all, 90)
    told = {subject(process, one) for process in COMMANDS for one in wanted[process] - AT_THE_END}
    wait_for("an alarm of each", lambda: not _print(told - parts.alarms()), 90)
    (raises,) = (part for part in started if part.command == "alarm-service")
    for part in started:
        if part is not raises:
            part.stop()
    assert parts.noted("fleet", "again") >= AT_THE_END
    wait_for("an alarm of the end", lambda: {subject("fleet", one) for one in AT_THE_END} <= parts.alarms(), 60)
    raises.stop()
    for process in COMMANDS:
        show(process, parts.alarms())
    assert parts.hub.stop() == 0


@pytest.mark.nightly
def test_a_part_whose_own_task_fails_ends_with_that_error(parts: Parts) -> None:
    """A supervisor, such as systemd, a container engine or a fleet, starts it again."""
    parts.leave(services=True)
    parts.hub.start()
    for process, command in COMMANDS.items():
        tasks = outcomes().of(process, "ends")
        assert tasks, process
        for task in sorted(tasks):
            parts.plant(command, tasks=[task])
            part = parts.start(command)
            code = part.process.wait(60)
            print(f"{process:16} {task:28} ends with exit code {code}")
            assert code != 0
            assert parts.noted(command, "thrown") == {task}
            assert f"{task} met an unexpected error" in part.log()
    assert parts.hub.stop() == 0


def _stimulate(parts: Parts, broker: Kafka, number: int) -> None:
    """Some events for all parts, and receipts that are invalid."""
    parts.hub.ask("POST", "/v1/feeds", json={"feed": f"F{number}", "class": "grid"})
    # A part with a planted error may refuse it.
    receiver = {"receiver": "nobody", "kind": "webhook", "address": "http://127.0.0.1:9/nobody"}
    parts.hub.answer("POST", "/v1/alarm-receivers", json=receiver)
    parts.hub.answer("POST", "/v1/alarm-receivers/nobody/test")
    parts.hub.answer("POST", "/v1/ports", json={"port": f"p{number}", "rate_bps": 1_000_000})
    producer = Producer({"bootstrap.servers": broker.address})
    producer.produce(f"{parts.prefix}.batches", b"no receipts")
    producer.flush(10)


def _unharmed(parts: Parts, command: str) -> Part:
    parts.plant(command)
    return parts.start(command)


def _lacking(parts: Parts, wanted: dict[str, frozenset[str]]) -> set[tuple[str, str]]:
    return {
        (process, handler)
        for process, command in COMMANDS.items()
        for handler in wanted[process] - BY_INPUT - AT_THE_END - parts.noted(command, "again")
    }


def _print(lacking: set[str]) -> set[str]:
    print(f"without an alarm: {sorted(lacking)}")
    return lacking


def _run(parts: list[Part]) -> bool:
    return all(part.runs() for part in parts)


HANDS_OVER = frozenset({"kafka.batches", "beside.questions", "beside.circuits", "parts.answer"})
"""Of a hub whose services are apart; the others are of one that reads receipts itself."""
AT_THE_END = frozenset({"fleet.end-of-sender"})
