"""Steps of a start either end or report the cause of the wait."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from downburst.supervision import FAULTS, starting, tasks
from downburst.supervision.starting import step


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "NOTICE_S", 0.01)


def test_a_step_that_never_ends_is_left_with_its_name_and_the_setting() -> None:
    left: list[str] = []
    ended = threading.Event()

    def leave(sentence: str) -> None:
        left.append(sentence)
        ended.set()

    with step("the ledger", limit_s=0.02, leave=leave):
        assert ended.wait(30)
    (sentence,) = left
    assert "(the ledger)" in sentence
    assert "start_step_s" in sentence


def test_a_step_of_any_length_is_named_while_it_lasts() -> None:
    told = threading.Event()

    def hear(message: str) -> None:
        if "the ledger's schema" in message:
            told.set()

    with hearing(hear), step("the ledger's schema", limit_s=None, leave=_never):
        assert told.wait(30)


def test_a_notice_that_has_begun_is_written_before_what_follows_the_step() -> None:
    begun, over, order = threading.Event(), threading.Event(), list[str]()

    def write(_message: str) -> None:
        begun.set()
        # A thread that waits for a processor: the step would be over by then.
        over.wait(0.2)
        order.append("notice")

    with hearing(write):
        with step("Kafka", limit_s=None, leave=_never):
            assert begun.wait(30)
        order.append("refusal")
        over.set()
    assert order[0] == "notice"
    assert order[-1] == "refusal"


def test_an_unknown_error_in_the_watch_of_a_step_is_counted_and_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    enter, planted, left = tasks._enter, [RuntimeError("nobody knows this")], threading.Event()

    def throw(handler: str, work: Callable[[], Any]) -> Any:
        if handler == "start.step" and planted:
            raise planted.pop()
        return enter(handler, work)

    monkeypatch.setattr(tasks, "_enter", throw)
    monkeypatch.setattr(tasks, "FIRST_WAIT_S", 0.01)
    with step("Kafka", limit_s=0.02, leave=lambda _: left.set()):
        assert left.wait(30)
    assert {fault.handler for fault in FAULTS.all()} == {"start.step"}


def test_a_step_that_ends_or_fails_is_not_left() -> None:
    watching = {thread for thread in threading.enumerate() if thread.name == "start.step"}
    with pytest.raises(OSError, match="no"), step("the data directory", limit_s=30.0, leave=_never):
        raise OSError("no")
    with step("Kafka", limit_s=30.0, leave=_never):
        pass
    for thread in threading.enumerate():
        if thread.name == "start.step" and thread not in watching:
            thread.join(30)
            assert not thread.is_alive()


@contextmanager
def hearing(hear: Callable[[str], object]) -> Iterator[None]:
    """Gives the messages of the log to `hear` during the block."""

    class Hearer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            hear(record.getMessage())

    hearer, log = Hearer(), logging.getLogger("downburst.supervision")
    log.addHandler(hearer)
    try:
        yield
    finally:
        log.removeHandler(hearer)


def _never(sentence: str) -> None:
    raise AssertionError(sentence)
