"""Clocks of a hub's nodes compared with that of the ledger's server; a ledger without a server compares nothing."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from downburst.domain.senders import HUB_CLOCK, ClockStanding
from downburst.foundation.clock import SystemClock
from downburst.ledger import Ledger, Transaction
from factories import SOME_TIME


class Ahead(SystemClock):
    """The clock of this machine, three seconds ahead; the database server of the tests runs on this machine too."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=3)


def test_the_servers_clock_is_found_to_within_the_bound(postgres_url: str) -> None:
    with_the_clock, ahead = Ledger.open(postgres_url, SystemClock()), Ledger.open(postgres_url, Ahead())
    with with_the_clock.transaction(writes=False) as tx:
        right = tx.measured.clocks.compare()
    with ahead.transaction(writes=False) as tx:
        wrong = tx.measured.clocks.compare()
    assert right is not None
    assert wrong is not None
    assert abs(right.ahead_us) <= right.bound_us
    assert abs(wrong.ahead_us - 3_000_000) <= wrong.bound_us
    between = wrong.to(right)
    assert abs(between.ahead_us - 3_000_000) <= between.bound_us
    for ledger in (with_the_clock, ahead):
        ledger.close()


def test_what_a_node_found_is_kept_and_replaced(tx: Transaction) -> None:
    assert tx.measured.clocks.of(HUB_CLOCK) is None
    for ahead_us in (1_500, -2_500):
        found = ClockStanding(ahead_us, 200, SOME_TIME)
        tx.measured.clocks.keep(HUB_CLOCK, found)
        tx.measured.clocks.keep("one", replace(found, ahead_us=7))
        assert tx.measured.clocks.of(HUB_CLOCK) == found


def test_a_ledger_in_a_file_has_no_server_to_ask(tmp_path: Path) -> None:
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with ledger.transaction(writes=False) as tx:
        assert tx.measured.clocks.compare() is None
    ledger.close()
