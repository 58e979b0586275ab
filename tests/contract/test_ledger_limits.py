"""Every limit of rows, raced by two processes' worth of writers: the rows never exceed it."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection, delete, func, select

from downburst.domain.plans import LegCounters, Transport
from downburst.domain.receipts import ProductException
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import LimitReached
from downburst.ledger import Ledger, Transaction
from downburst.ledger.storage import limits
from downburst.ledger.storage.limits import RowLimit
from downburst.ledger.tables.base import metadata
from factories import EPOCH, SOME_TIME
from kit.rows import ROWS, TIMES, Rows, site_of

MOST = 5


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Ledger]]:
    """Two ledgers with a writing thread each on one database, as two processes have."""
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite'}"
    if request.param == "postgresql":
        server = request.getfixturevalue("server")
        url = server.url(server.database(request.getfixturevalue("template")))
    both = [Ledger.open(url, FakeClock()) for _ in range(2)]
    yield both
    for ledger in both:
        ledger.close()


@pytest.fixture
def writers(opened: list[Ledger]) -> Iterator[list[Ledger]]:
    """The same without rows: a database for each test would take ten times as long."""
    yield opened
    with opened[0].transaction() as tx:
        for table in reversed(metadata.sorted_tables):
            _connection(tx).execute(delete(table))


@pytest.mark.parametrize("name", ROWS)
async def test_rows_added_at_once_are_no_more_than_the_limit(
    name: str, writers: list[Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, limit = ROWS[name], getattr(limits, name)
    with writers[0].transaction() as tx:
        rows.prepare(tx)
    monkeypatch.setattr(limits, name, replace(limit, most=MOST))
    refused = await _race(rows, writers[:1] if rows.one_writer else writers)
    with writers[0].transaction() as tx:
        assert _count(tx, rows) == MOST + rows.besides
    if isinstance(limit, RowLimit):
        assert len(refused) == TIMES - MOST
        (said,) = {(one.code, one.extra["limit"], one.extra["most"], one.extra["count"]) for one in refused}
        assert said == ("limit-reached", limit.name, MOST, MOST)
        assert all(limit.remedy in one.sentence for one in refused)
    else:
        assert refused == [], "the oldest go instead"


def test_a_limit_is_of_one_holder_alone(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SILENCES_OF_MAKER", replace(limits.SILENCES_OF_MAKER, most=1))
    others = ROWS["SILENCES"]
    for number in range(3):
        others.add(tx, number)
    with pytest.raises(LimitReached, match=r"'user 1' has 1 silences, and the limit is 1; end one first"):
        others.add(tx, 1)


def test_rows_that_count_no_more_make_room(
    tx: Transaction, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PENDING_TOKENS_OF_SITE", "SILENCES", "KEYS_OF_TENANT", "CHANGES_OF_TENANT", "ACCESS_TOKENS"):
        monkeypatch.setattr(limits, name, replace(getattr(limits, name), most=1))
    chosen = [ROWS[name] for name in ("PENDING_TOKENS_OF_SITE", "SILENCES", "KEYS_OF_TENANT", "ACCESS_TOKENS")]
    chosen[0].prepare(tx)
    for day in range(3):
        for rows in (*chosen, ROWS["CHANGES_OF_TENANT"]):
            rows.add(tx, day)
            with pytest.raises(LimitReached):
                rows.add(tx, 10 + day)
        clock.advance(86_401)


def test_what_forgotten_plans_sent_is_in_the_sums(tx: Transaction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PLANS_OF_FEED", replace(limits.PLANS_OF_FEED, most=2))
    for version in range(1, 6):
        ROWS["PLANS_OF_FEED"].add(tx, version)
        for leg, transport in enumerate((Transport.UNICAST, Transport.MULTICAST)):
            tx.planning.legs.count([LegCounters("NGRID", version, leg, transport, 1, egress_bytes=10**leg)])
    assert [plan.version for plan in tx.planning.plans.history("NGRID")] == [5, 4]
    assert Counter(one.version for one in tx.planning.legs.counters("NGRID")) == {0: 2, 4: 2, 5: 2}
    summed = {one.transport: one.egress_bytes for one in tx.planning.legs.counters("NGRID") if one.version == 0}
    assert summed == {Transport.UNICAST: 3, Transport.MULTICAST: 30}
    assert tx.planning.legs.totals().egress_bytes == 55


def test_a_site_that_enrols_and_revokes_without_end_keeps_its_newest(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ENDED_CREDENTIALS_OF_SITE", replace(limits.ENDED_CREDENTIALS_OF_SITE, most=3))
    monkeypatch.setattr(limits, "ENDED_TOKENS_OF_SITE", replace(limits.ENDED_TOKENS_OF_SITE, most=3))
    rows = ROWS["CREDENTIALS_OF_SITE"]
    rows.prepare(tx)
    for number in range(9):
        rows.add(tx, number)
        assert tx.enrolment.credentials.revoke(site_of(0)) == 1
    rows.add(tx, 9)
    assert len(tx.enrolment.credentials.of(site_of(0))) == 3 + 1
    assert len(tx.enrolment.tokens.of(site_of(0))) == 3 + 1


def test_a_site_that_rejects_without_end_loses_its_oldest_and_no_other_site_any(
    tx: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EXCEPTIONS_OF_SITE", replace(limits.EXCEPTIONS_OF_SITE, most=20))
    tx.measured.exceptions.add(*(_lost(number, "honest.edu", second=0) for number in range(20)))
    for number in range(50):
        tx.measured.exceptions.add(_lost(number, "unl.edu", second=number))
    kept = tx.measured.exceptions.recent(site="unl.edu")
    assert [one.sequence for one in kept] == list(range(49, 29, -1))
    tx.measured.exceptions.add(*(_lost(number, "unl.edu", second=99) for number in range(100, 200)))
    assert len(tx.measured.exceptions.recent(site="unl.edu")) == 20, "all of one moment"
    assert len(tx.measured.exceptions.recent(site="honest.edu")) == 20


def _lost(number: int, site: str, *, second: int) -> ProductException:
    return ProductException("NGRID", EPOCH, number, site, "rejected", SOME_TIME + timedelta(seconds=second))


async def _race(rows: Rows, writers: list[Ledger]) -> list[LimitReached]:
    """Adds all rows concurrently, through each writer in turn; returns the refusals."""
    tried = [
        writers[number % len(writers)].write(lambda tx, number=number: rows.add(tx, number))  # type: ignore[misc]
        for number in range(TIMES)
    ]
    found = await asyncio.gather(*tried, return_exceptions=True)
    refused = [one for one in found if isinstance(one, LimitReached)]
    assert not [one for one in found if isinstance(one, BaseException) and one not in refused], found
    return refused


def _count(tx: Transaction, rows: Rows) -> int:
    return _connection(tx).scalar(select(func.count()).select_from(rows.table)) or 0


def _connection(tx: Transaction) -> Connection:
    return tx.access.audit._connection
