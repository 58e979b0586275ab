"""Content of the ledger: feeds, sites, subscriptions, resends, plans."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, inspect

from downburst.domain.feeds import DuplicateRule, Feed, FeedClass
from downburst.domain.plans import Candidate, Transport
from downburst.domain.resends import Resend, ResendState
from downburst.domain.sites import CircuitAttachment, Place, Site
from downburst.domain.subscriptions import IdFilter, Subscription
from downburst.domain.upstreams import LdmAccept, LdmSource, Upstream
from downburst.foundation.clock import FakeClock
from downburst.foundation.errors import AlreadyThere, NotFound, NotWritable, Refused, UnknownFeed
from downburst.ledger import Ledger, Transaction
from downburst.ledger.storage.databases import connect
from downburst.ledger.storage.dump import SELF_NUMBERING, Dump, fill, look
from downburst.ledger.tables.base import metadata
from factories import multicast, plan, site_with_token, sketch_row, unicast

if TYPE_CHECKING:
    from kit.postgres import Postgres


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_migrations_make_the_tables_that_the_code_means(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if kind == "sqlite":
        urls = [f"sqlite:///{tmp_path / name}" for name in ("migrated.sqlite", "meant.sqlite")]
    else:
        server: Postgres = request.getfixturevalue("server")
        urls = [server.url(server.database()) for _ in range(2)]
    Ledger.open(urls[0]).close()
    made, meant = connect(urls[0]), connect(urls[1])
    metadata.create_all(meant)
    for table in metadata.tables:
        columns = {column["name"]: str(column["type"]) for column in inspect(made).get_columns(table)}
        assert columns == {column["name"]: str(column["type"]) for column in inspect(meant).get_columns(table)}, table
        if (kind, table) != ("postgresql", "exceptions"):
            # There, the partitioning column of the table is part of its key as well.
            assert inspect(made).get_pk_constraint(table) == inspect(meant).get_pk_constraint(table)
        assert _foreign_keys(made, table) == _foreign_keys(meant, table)
    made.dispose()
    meant.dispose()


def test_opening_again_keeps_what_is_there(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'again.sqlite'}"
    for expected in (0, 1):
        opened = Ledger.open(url)
        with opened.transaction() as tx:
            assert len(tx.feeds.all()) == expected
            if not expected:
                tx.feeds.add(Feed("NGRID"))
        opened.close()


def test_a_directory_that_can_not_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="check the directory"):
        Ledger.open(f"sqlite:///{tmp_path / 'nowhere' / 'ledger.sqlite'}")


async def test_work_that_raises_leaves_nothing(ledger: Ledger) -> None:
    def half(tx: Transaction) -> None:
        tx.feeds.add(Feed("NGRID"))
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        await ledger.write(half)
    assert await ledger.read(lambda tx: tx.feeds.all()) == []


def test_a_feed_comes_back_whole(tx: Transaction) -> None:
    made = tx.feeds.add(
        Feed("IDS|DDPLUS", FeedClass.WARNING, retention_hours=1.5, duplicate_rule=DuplicateRule.NONE, objective_ms=7)
    )
    assert tx.feeds.one("IDS|DDPLUS") == made
    assert made.unicast_leg is not None
    assert made.created_at == tx.clock.now()


def test_feeds_have_legs_of_their_own_for_good(tx: Transaction) -> None:
    first = tx.feeds.add(Feed("A")).unicast_leg
    tx.feeds.remove("A")
    second = tx.feeds.add(Feed("A")).unicast_leg
    assert first is not None
    assert second is not None
    assert second > first
    changed = tx.feeds.change(Feed("A", FeedClass.BULK))
    assert changed.unicast_leg == second


def test_a_feed_is_made_once(tx: Transaction) -> None:
    tx.feeds.add(Feed("NGRID"))
    with pytest.raises(AlreadyThere, match="NGRID"):
        tx.feeds.add(Feed("NGRID"))


def test_an_unknown_feed_names_the_near_ones(tx: Transaction) -> None:
    for name in ("NGRID", "NEXRAD2", "NEXRAD3"):
        tx.feeds.add(Feed(name))
    with pytest.raises(UnknownFeed) as refused:
        tx.feeds.one("ngird")
    assert refused.value.extra["near"] == ["NGRID"]
    assert "did you mean NGRID?" in refused.value.sentence


def test_a_site_comes_back_whole(tx: Transaction) -> None:
    site = Site(
        "unl.edu",
        organisation="Nebraska",
        place=Place("Lincoln", 40.8, -96.7),
        circuit_attachment=CircuitAttachment("ae1", 100, 199),
        ceiling_mbps_by_hour=tuple(float(hour) for hour in range(24)),
        allow=("NGRID",),
        multicast=False,
    )
    assert tx.sites.add(site) == replace(site, created_at=tx.clock.now())


def test_what_a_site_had_goes_with_it(tx: Transaction) -> None:
    site_with_token(tx, "secret")
    tx.enrolment.tokens.consume("secret", "credential", peer="192.0.2.1:5")
    tx.feeds.add(Feed("NGRID"))
    tx.subscriptions.add(Subscription(0, "unl.edu", "NGRID"))
    tx.sites.remove("unl.edu")
    assert tx.subscriptions.all() == []
    assert tx.enrolment.credentials.usable() == []
    with pytest.raises(Refused, match="unknown to the hub"):
        tx.enrolment.tokens.consume("secret", "credential", peer="192.0.2.1:5")


def test_a_subscription_that_is_gone_is_said(tx: Transaction) -> None:
    with pytest.raises(NotFound, match="no subscription 7"):
        tx.subscriptions.remove(7)


def test_a_resend_waits_until_it_ends_once(tx: Transaction) -> None:
    wanted = _resend(tx)
    kept = tx.resends.add(wanted)
    assert kept == replace(wanted, id=kept.id, requested_at=tx.clock.now())
    assert tx.resends.waiting() == [kept]
    assert tx.resends.finish(kept.id, products=3, size_bytes=99, expired=1)
    assert not tx.resends.finish(kept.id, products=4, size_bytes=100, expired=1)
    ended = tx.resends.one(kept.id)
    assert (ended.state, ended.products, ended.bytes, ended.expired) == (ResendState.DONE, 3, 99, 1)
    assert ended.ended_at == tx.clock.now()
    assert tx.resends.waiting() == []
    assert tx.resends.cancel(kept.id).state is ResendState.DONE


def test_resends_are_found_by_site_and_feed_and_never_numbered_twice(tx: Transaction) -> None:
    wanted = _resend(tx)
    first, second = tx.resends.add(wanted), tx.resends.add(wanted)
    assert tx.resends.newest(site="unl.edu", feed="NGRID") == [second, first]
    assert tx.resends.newest(limit=1) == [second]
    assert tx.resends.newest(site="other") == []
    assert tx.resends.cancel(first.id).state is ResendState.CANCELLED
    assert tx.resends.waiting() == [second]
    tx.sites.remove("unl.edu")
    assert tx.resends.newest() == []
    assert tx.resends.add(_resend(tx)).id > second.id
    with pytest.raises(NotFound, match="no resend 77"):
        tx.resends.cancel(77)


def test_a_subscription_keeps_order_age_and_start(tx: Transaction) -> None:
    _resend(tx)
    wish = Subscription(0, "unl.edu", "NGRID", in_order=True, hold_s=0.5, max_age_s=60.0, start_at=tx.clock.now())
    kept = tx.subscriptions.add(wish)
    assert kept == replace(wish, id=kept.id, created_at=tx.clock.now())


def test_who_wants_what_is_told_once_for_several_patterns(tx: Transaction) -> None:
    _resend(tx)
    for pattern in ("^a", "^b"):
        tx.subscriptions.add(Subscription(0, "unl.edu", "NGRID", pattern))
    assert tx.subscriptions.pairs() == {("NGRID", "unl.edu")}


def test_ldm_sources_and_what_is_accepted_are_kept(tx: Transaction) -> None:
    wanted = LdmSource("idd", "NGRID|CONDUIT", ("idd.example.edu", "[2001:db8::7]:3880"), "[05]$", 7200)
    kept = tx.ldm.sources.add(wanted)
    assert kept.created_at is not None
    assert replace(kept, created_at=None) == wanted
    with pytest.raises(AlreadyThere, match="another name"):
        tx.ldm.sources.add(wanted)
    changed = tx.ldm.sources.change(replace(wanted, max_age_s=60))
    assert (changed.max_age_s, changed.created_at, tx.ldm.sources.all()) == (60, kept.created_at, [changed])
    tx.ldm.sources.remove("idd")
    with pytest.raises(NotFound, match="ldm sources"):
        tx.ldm.sources.remove("idd")
    line = tx.ldm.accepts.add(LdmAccept(0, "EXP", "^rtstats", ".*"))
    assert tx.ldm.accepts.all() == [line]
    tx.ldm.accepts.remove(line.id)
    with pytest.raises(NotFound, match="ldm accepts"):
        tx.ldm.accepts.remove(line.id)


def test_feeds_and_sites_keep_what_ldm_knows_them_by(tx: Transaction) -> None:
    tx.feeds.add(Feed("TEXT", ldm_feed_type="IDS|DDPLUS", ldm_pattern="^W", duplicate_rule=DuplicateRule.SIGNATURE))
    found = tx.feeds.one("TEXT")
    assert (found.ldm_feed_type, found.ldm_pattern, found.duplicate_rule) == ("IDS|DDPLUS", "^W", "signature")
    tx.sites.add(Site("a.edu", ldm_host=r"^ldm\.a\.edu$"))
    assert tx.sites.one("a.edu").ldm_host == r"^ldm\.a\.edu$"
    assert tx.sites.change(replace(tx.sites.one("a.edu"), ldm_host=None)).ldm_host is None


def test_upstreams_are_kept_by_name(tx: Transaction) -> None:
    wanted = Upstream("unidata", "idd.example.edu:7370", "dbt1.ab.secret", ("NGRID", "IDS|DDPLUS"))
    kept = tx.fleet.upstreams.add(wanted)
    assert kept == replace(wanted, created_at=tx.clock.now())
    assert "secret" not in repr(kept)
    assert tx.fleet.upstreams.all() == [kept]
    with pytest.raises(AlreadyThere, match="unidata"):
        tx.fleet.upstreams.add(wanted)
    tx.fleet.upstreams.remove("unidata")
    with pytest.raises(NotFound, match="upstreams list"):
        tx.fleet.upstreams.remove("unidata")


def test_plans_get_rising_versions_and_come_back_whole(tx: Transaction) -> None:
    leg = tx.planning.legs.allocate("NGRID")
    first = replace(
        plan("NGRID", unicast(leg, "a"), made_at=tx.clock.now()),
        candidates=(Candidate(Transport.MULTICAST, feasible=False, reason="one site", egress_bps=1.5),),
        figures={"mean_bps": 12.3e6, "because": "start"},
    )
    assert tx.planning.plans.append(first) == replace(first, version=1)
    assert tx.planning.plans.append(plan("NGRID", multicast(leg + 1, "a", "b"))).version == 2
    assert tx.planning.plans.append(plan("OTHER")).version == 1
    assert tx.planning.plans.history("NGRID")[1] == replace(first, version=1)
    assert [(current.feed, current.version) for current in tx.planning.plans.all_current()] == [
        ("NGRID", 2),
        ("OTHER", 1),
    ]
    assert tx.planning.plans.current("NONE") is None


def test_figures_of_a_plan_can_be_added_later(tx: Transaction) -> None:
    kept = tx.planning.plans.append(plan("NGRID", unicast(1, "a")))
    tx.planning.plans.annotate(replace(kept, figures={"predicted_over_measured": 1.1}, reason="not written"))
    assert tx.planning.plans.current("NGRID") == replace(kept, figures={"predicted_over_measured": 1.1})


def test_a_pin_replaces_the_one_before(tx: Transaction) -> None:
    tx.feeds.add(Feed("NGRID"))
    tx.planning.pins.set("NGRID", Transport.UNICAST, by="anna")
    tx.planning.pins.set("NGRID", Transport.MULTICAST, by="ben")
    pin = tx.planning.pins.find("NGRID")
    assert pin is not None
    assert (pin.transport, pin.by) == (Transport.MULTICAST, "ben")
    assert tx.planning.pins.remove("NGRID")
    assert not tx.planning.pins.remove("NGRID")


def _foreign_keys(engine: Engine, table: str) -> list[Any]:
    return sorted(inspect(engine).get_foreign_keys(table), key=lambda key: str(key["name"]))


def _resend(tx: Transaction) -> Resend:
    """A resend to a site and of a feed, which are created if missing."""
    if tx.sites.find("unl.edu") is None:
        tx.sites.add(Site("unl.edu"))
    if not tx.feeds.all():
        tx.feeds.add(Feed("NGRID"))
    now = tx.clock.now()
    return Resend(
        0, "unl.edu", "NGRID", now - timedelta(hours=2), now, wanted=IdFilter("^A", "B$"), had=(IdFilter("^AA"),)
    )


def test_every_table_that_numbers_its_rows_is_known_to_backups() -> None:
    numbering = {table.name for table in metadata.tables.values() if table.dialect_options["sqlite"]["autoincrement"]}
    assert numbering == SELF_NUMBERING


def test_every_row_goes_into_another_database_and_back(
    ledger: Ledger, request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> None:
    with ledger.transaction() as tx:
        site_with_token(tx, "secret")
        tx.resends.add(_resend(tx))
        tx.resends.cancel(tx.resends.add(_resend(tx)).id)
        tx.measured.latency.add(sketch_row([1.0, 2.0]))
        last = tx.resends.newest()[0]
    url = ledger._engine.url.render_as_string(hide_password=False)
    between = f"sqlite:///{tmp_path / 'between.sqlite'}"
    _copy(url, between)
    if url.startswith("postgres"):
        server: Postgres = request.getfixturevalue("server")
        url = server.url(server.database())
    else:
        url = f"sqlite:///{tmp_path / 'again.sqlite'}"
    _copy(between, url)
    again = Ledger.open(url, clock)
    with again.transaction() as tx:
        assert tx.resends.newest()[0] == last
        assert [site.name for site in tx.sites.all()] == ["unl.edu"]
        assert tx.resends.add(_resend(tx)).id == last.id + 1
    again.close()


def _copy(source: str, target: str) -> None:
    engine, connection = look(source)
    dump = Dump(connection)
    tables = [(table, list(dump.rows(table))) for table in dump.tables]
    fill(target, dump.revision, tables, dump.counters())
    connection.close()
    engine.dispose()


def test_every_table_that_numbers_its_rows_goes_on_with_them_in_a_restored_ledger() -> None:
    counted = {name for name, table in metadata.tables.items() if table.dialect_options["sqlite"]["autoincrement"]}
    assert counted == SELF_NUMBERING
