"""Work that loses its connection is retried, given up after a while, and never piles up."""

import threading
import traceback
from collections.abc import Callable

import pytest

from downburst.foundation.errors import AlreadyRunning, LedgerAway
from downburst.ledger.storage.outage import BETWEEN_TRIES_S, ConnectionLost, Outages


class Database:
    """Fails the given number of times, then answers; each try takes a tenth of a second on its own clock."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tries = 0
        self.now_s = 0.0

    def attempt(self) -> str:
        self.tries += 1
        self.now_s += 0.1
        if self.tries <= self.failures:
            raise ConnectionLost(LedgerAway("nobody listens there"))
        return "done"

    def clock(self) -> float:
        # A waiting caller reads the clock again and again, and each reading advances the time.
        self.now_s += 0.6
        return self.now_s


def through(database: Database, outages: Outages, patience_s: float) -> Callable[[], str]:
    return lambda: outages.through(database.attempt, patience_s=patience_s)


def test_a_connection_that_was_stale_costs_one_try_more() -> None:
    database = Database(failures=1)
    outages = Outages(database.clock)
    assert outages.through(database.attempt, patience_s=0) == "done"
    assert (database.tries, outages.current) == (2, None)


def test_a_server_that_comes_back_in_time_is_not_noticed_by_the_work() -> None:
    database = Database(failures=3)
    outages = Outages(database.clock)
    assert outages.through(database.attempt, patience_s=60) == "done"
    assert outages.current is None


def test_after_the_patience_work_is_refused_with_the_reason() -> None:
    database = Database(failures=1_000_000)
    outages = Outages(database.clock)
    with pytest.raises(LedgerAway, match="nobody listens there"):
        outages.through(database.attempt, patience_s=2)
    assert database.tries <= 2 / BETWEEN_TRIES_S + 2
    outage = outages.current
    assert outage is not None
    assert outage.seconds >= 2
    tries = database.tries
    with pytest.raises(LedgerAway):
        outages.through(database.attempt, patience_s=2)
    assert database.tries <= tries + 2, "later work tries a stale connection and a fresh one at most"


def test_each_refusal_is_one_of_its_own_and_tells_of_its_own_calls_alone() -> None:
    database = Database(failures=1_000_000)
    outages = Outages(database.clock)
    refused = []
    for _ in range(5):
        with pytest.raises(LedgerAway) as caught:
            outages.through(database.attempt, patience_s=0)
        refused.append(caught.value)
    assert len({id(one) for one in refused}) == len(refused)
    calls = [len(list(traceback.walk_tb(one.__traceback__))) for one in refused]
    assert max(calls) == min(calls), "what is raised in a long outage does not grow"


def test_a_refusal_of_the_work_itself_ends_the_outage() -> None:
    database = Database(failures=1)
    outages = Outages(database.clock)

    def attempt() -> str:
        database.attempt()
        raise AlreadyRunning("another hub")

    with pytest.raises(AlreadyRunning):
        outages.through(attempt, patience_s=5)
    assert outages.current is None


def test_an_end_frees_who_waits() -> None:
    database = Database(failures=1_000_000)
    outages = Outages(lambda: 0.0)
    ended: list[str] = []

    def wait() -> None:
        try:
            outages.through(database.attempt, patience_s=1e9)
        except LedgerAway as error:
            ended.append(error.sentence)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while database.tries < 2:
        pass
    outages.end()
    waiting.join(timeout=20)
    assert ended == ["nobody listens there"]
