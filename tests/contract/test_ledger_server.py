"""Behaviour that only a ledger on a server has: lost connections, held parts of tables, two hubs, refusals."""

import asyncio
import re
import socketserver
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy.exc import DBAPIError

from downburst.domain.feeds import Feed
from downburst.domain.receipts import Batch, ProductException
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyRunning, DownburstError, LedgerAway
from downburst.ledger import Ledger, Transaction
from downburst.ledger.storage.databases import connect, explained, shown
from downburst.ledger.storage.partitions import DIVISIONS
from downburst.ledger.storage.rows import WORTH_COPYING
from factories import EPOCH, settled, sketch_row
from kit.cutting import CuttingProxy
from kit.patience import wait_for
from kit.postgres import Postgres

pytestmark = pytest.mark.all


@pytest.fixture
def held(postgres_url: str, clock: FakeClock) -> Iterator[Ledger]:
    opened = Ledger.open(postgres_url, clock)
    opened.hold()
    yield opened
    opened.close()


def database(url: str) -> str:
    return url.rpartition("/")[2]


async def test_a_batch_of_many_rows_is_copied_in_and_adds_up(held: Ledger) -> None:
    sites = [f"site{number}.edu" for number in range(5 * WORTH_COPYING)]
    lost = ProductException("NGRID", EPOCH, 7, "", "rejected", datetime(2026, 1, 1, tzinfo=UTC))

    def batch(name: str, outcome: str) -> Batch:
        return Batch(
            name,
            tuple(sketch_row([1.5, 2.5], site=site, minute=5) for site in sites),
            tuple(replace(lost, site=site, outcome=outcome) for site in sites),
            tuple(replace(settled(9, stored=2), site=site) for site in sites),
        )

    for one in (batch("b1", "rejected"), batch("b2", "expired")):
        assert await held.write(partial(_load, batch=one))
    found = await held.read(
        lambda tx: (
            tx.measured.latency.rows(),
            tx.measured.settled.all(),
            tx.measured.exceptions.recent(limit=len(sites) * 3),
        )
    )
    rows, reports, exceptions = found
    assert rows == [sketch_row([1.5, 2.5, 1.5, 2.5], site=row.site, minute=5) for row in rows]
    assert sorted(row.site for row in rows) == sorted(sites)
    assert sorted((report.site, report.stored) for report in reports) == sorted((site, 4) for site in sites)
    assert sorted((one.site, one.outcome) for one in exceptions) == sorted((site, "expired") for site in sites)


async def test_a_table_of_times_lies_in_parts_and_old_parts_go(held: Ledger, server: Postgres) -> None:
    name = database(str(held._engine.url))
    now = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)
    minute = int(now.timestamp()) // 60
    await held.write(lambda tx: tx.measured.partitions.keep(now))
    await held.write(
        lambda tx: tx.measured.latency.add(sketch_row([1.0], minute=minute), sketch_row([2.0], minute=5))
    )
    while await held.write(lambda tx: tx.measured.latency.roll_up(before_minute=minute + 60)):
        pass
    where = "SELECT tableoid::regclass::text, minute FROM latency_sheets WHERE step = 1 ORDER BY minute"
    assert server.execute(where, name) == [
        ("latency_sheets_rest", 0),
        ("latency_sheets_20260212_00", minute // 60 * 60),
    ]
    assert {row.minute for row in await held.read(lambda tx: tx.measured.latency.rows())} == {5, minute}
    await held.write(lambda tx: tx.measured.latency.forget_before(minute + 60 * 24 * 400))
    assert await held.read(lambda tx: tx.measured.latency.rows()) == []
    assert not [part for part in parts(server, name) if part.startswith("latency_sheets_20260212")]


async def test_what_came_before_its_part_moves_into_it(held: Ledger, server: Postgres) -> None:
    at = datetime(2026, 3, 5, 12, 30, tzinfo=UTC)
    lost = [
        ProductException("NGRID", EPOCH, number, "a", "expired", at + timedelta(days=number)) for number in range(9)
    ]
    await held.write(lambda tx: tx.measured.exceptions.add(*lost))
    await held.write(lambda tx: tx.measured.partitions.keep(at))
    found = server.execute(
        "SELECT DISTINCT tableoid::regclass::text FROM exceptions", database(str(held._engine.url))
    )
    assert all(re.fullmatch(r"exceptions_2026\d{4}_00", name) for (name,) in found), found
    assert sorted(await held.read(lambda tx: tx.measured.exceptions.recent()), key=lambda one: one.sequence) == lost


def _load(tx: Transaction, *, batch: Batch) -> bool:
    return tx.measured.batches.load(batch)


def parts(server: Postgres, name: str) -> set[str]:
    found = server.execute("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'", name)
    return {part for (part,) in found} - {division.rest for division in DIVISIONS}


async def test_a_write_whose_connection_breaks_is_done_once(held: Ledger, server: Postgres) -> None:
    tries = []

    def work(tx: Transaction) -> None:
        tx.feeds.add(Feed("NGRID"))
        tries.append(1)
        if len(tries) == 1:
            (own,) = server.execute(
                "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction' "
                f"AND datname = '{database(str(held._engine.url))}'"
            )
            server.execute(f"SELECT pg_terminate_backend({own[0]})")

    await held.write(work)
    assert len(tries) == 2
    assert [feed.name for feed in await held.read(lambda tx: tx.feeds.all())] == ["NGRID"]
    assert held.outage is None


@pytest.mark.parametrize("reaches_the_server", [True, False])
async def test_a_commit_without_an_answer_is_looked_up(
    postgres_url: str, server: Postgres, clock: FakeClock, reaches_the_server: bool
) -> None:
    with CuttingProxy(server.port) as proxy:
        ledger = Ledger.open(server.url(database(postgres_url), port=proxy.port), clock)
        ledger.hold()
        tries = []

        def work(tx: Transaction) -> str:
            tries.append(1)
            if len(tries) == 1:
                proxy.cut_at(b"COMMIT", after_passing_it=reaches_the_server)
            return tx.feeds.add(Feed(f"F{len(tries)}")).name

        assert await ledger.write(work) == ("F1" if reaches_the_server else "F2")
        assert proxy.cuts == 1
        feeds = await ledger.read(lambda tx: [feed.name for feed in tx.feeds.all()])
        assert feeds == (["F1"] if reaches_the_server else ["F2"])
        ledger.close()


async def test_a_server_that_stays_away_is_said_at_once_after_a_while(clock: FakeClock) -> None:
    server = Postgres().start()
    name = server.database()
    ledger = Ledger.open(server.url(name), clock)
    try:
        server.kill()
        # By the kernel's answer: nothing listens there, or the connection ended.
        with pytest.raises(LedgerAway, match=r"can't be reached: .*; start the server, or correct host and port"):
            await ledger.read(lambda tx: tx.feeds.all(), patience_s=0.5)
        outage = ledger.outage
        assert outage is not None
        assert "test-only" not in outage.sentence
        waiting = asyncio.gather(*(ledger.read(lambda tx: tx.feeds.all(), patience_s=300) for _ in range(8)))
        began = time.monotonic()
        with pytest.raises(LedgerAway):
            await ledger.write(lambda tx: tx.feeds.all(), patience_s=0)
        assert time.monotonic() - began < 10
        await asyncio.to_thread(server.start)
        assert await waiting == [[]] * 8
        assert ledger.outage is None
    finally:
        ledger.close()
        server.remove()


async def test_the_second_hub_is_refused_and_the_first_goes_on(held: Ledger, postgres_url: str) -> None:
    other = Ledger.open(postgres_url)
    with pytest.raises(AlreadyRunning, match=r"another hub \(on .*, since 2026-01-01 00:00 UTC\) holds the ledger"):
        other.hold()
    other.close()
    await held.write(lambda tx: tx.feeds.add(Feed("NGRID")))


async def test_a_hub_that_was_displaced_writes_no_more(held: Ledger, postgres_url: str, server: Postgres) -> None:
    """As if its connections had hung while the server dropped them and another hub took over."""
    await held.write(lambda tx: tx.feeds.add(Feed("BEFORE")))
    name = database(postgres_url)
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    other = Ledger.open(postgres_url)
    wait_for("the lock of the first hub to be free", lambda: _holds(other))
    with pytest.raises(AlreadyRunning, match="another hub"):
        await held.write(lambda tx: tx.feeds.add(Feed("AFTER")))
    with pytest.raises(AlreadyRunning, match="another hub"):
        await held.renew_hold()
    await other.write(lambda tx: tx.feeds.add(Feed("OTHER")))
    assert [feed.name for feed in await other.read(lambda tx: tx.feeds.all())] == ["BEFORE", "OTHER"]
    other.close()


async def test_a_hold_whose_connection_broke_is_renewed(held: Ledger, postgres_url: str, server: Postgres) -> None:
    name = database(postgres_url)
    server.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    await held.write(lambda tx: tx.feeds.add(Feed("NGRID")))
    await held.renew_hold()
    other = Ledger.open(postgres_url)
    with pytest.raises(AlreadyRunning):
        other.hold()
    other.close()
    await held.write(lambda tx: tx.feeds.add(Feed("TEXT")))


def _holds(ledger: Ledger) -> bool:
    try:
        ledger.hold()
    except AlreadyRunning:
        return False
    return True


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"password": "wrong"}, "refused the password; correct it in the URL"),
        ({"port": 1}, "nothing listens there; start the server, or correct host and port"),
        ({"database": "nowhere"}, "does not have this database; create it with createdb"),
    ],
)
def test_a_server_that_refuses_is_one_sentence(server: Postgres, change: dict[str, object], sentence: str) -> None:
    given = {"database": "postgres"} | change
    url = server.url(**given)  # type: ignore[arg-type]
    with pytest.raises(DownburstError) as refused:
        Ledger.open(url)
    assert sentence in refused.value.sentence
    assert "\n" not in refused.value.sentence
    assert "wrong" not in refused.value.sentence
    assert "test-only" not in refused.value.sentence


class Mail(socketserver.BaseRequestHandler):
    """A server of another protocol, which greets its clients."""

    def handle(self) -> None:
        self.request.sendall(b"220 mail.test ESMTP\r\n")


@pytest.mark.parametrize(
    ("handler", "sentence"),
    [
        (
            socketserver.BaseRequestHandler,
            "can't be reached: the connection ended without an answer; start the server, or correct host and port",
        ),
        (Mail, "; correct host and port, or start the server if it stays away"),
    ],
)
def test_a_port_of_something_else_is_one_sentence(
    server: Postgres, handler: type[socketserver.BaseRequestHandler], sentence: str
) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.05}).start()
        url = server.url("postgres", port=other.server_address[1])
        try:
            with pytest.raises(LedgerAway) as refused:
                Ledger.open(url)
        finally:
            other.shutdown()
    print(refused.value.sentence)
    assert refused.value.sentence.startswith(f"the ledger {shown(url)} can't be ")
    assert refused.value.sentence.endswith(sentence)
    assert "\n" not in refused.value.sentence


def test_a_connection_that_the_server_ends_is_one_sentence(server: Postgres) -> None:
    url = server.url("postgres")
    engine = connect(url)
    with engine.connect() as connection, pytest.raises(DBAPIError) as ended:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")
    engine.dispose()
    failure = explained(ended.value, url)
    assert isinstance(failure, LedgerAway)
    assert failure.sentence == f"the ledger {shown(url)} has ended this connection; start the server if it stays away"


def test_a_role_without_rights_is_one_sentence(server: Postgres) -> None:
    name = server.database()
    server.execute("DROP ROLE IF EXISTS reader")
    server.execute("CREATE ROLE reader LOGIN PASSWORD 'test-only'")
    url = server.url(name).replace("downburst:", "reader:")
    with pytest.raises(DownburstError, match=r"its role lacks a right \(permission denied.*let it own its database"):
        Ledger.open(url)
    server.drop(name)


def test_a_host_that_is_unknown_is_one_sentence() -> None:
    with pytest.raises(LedgerAway, match="has an unknown host name"):
        Ledger.open("postgresql://downburst@no-such-host.invalid/downburst")


async def test_readers_see_one_moment(held: Ledger) -> None:
    began, changed = threading.Event(), threading.Event()

    def look(tx: Transaction) -> tuple[int, int]:
        first = len(tx.feeds.all())
        began.set()
        changed.wait(20)
        return first, len(tx.feeds.all())

    looking = asyncio.create_task(held.read(look))
    await asyncio.to_thread(began.wait, 20)
    await held.write(lambda tx: tx.feeds.add(Feed("NGRID")))
    changed.set()
    assert await looking == (0, 0)
