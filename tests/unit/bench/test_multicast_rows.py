"""Rows from deliveries, with figures that can be worked out by hand."""

from dataclasses import replace

import pytest
from bench.harness.counters import LinkBytes
from bench.harness.delivery import HUB, Delivery
from bench.harness.report import Row
from bench.multicast import rows
from bench.multicast.rows import SITES, SLOW, Runs

PRODUCT_BYTES = 10_000_000


def delivery(
    took_s: float = 1.0, *, slow_s: float = 0.0, sent: float = 1.05, received: float = 1.05, cpu_s: float = 0.7
) -> Delivery:
    """Seven sites of equal duration except the slow one; `sent` and `received` are shares of the product's bytes."""
    moved = {site: LinkBytes(int(received * PRODUCT_BYTES), 0) for site in SITES}
    return Delivery(
        product_bytes=PRODUCT_BYTES,
        took_s={site: slow_s if slow_s and site == SLOW else took_s for site in SITES},
        cpu_s=cpu_s,
        links={HUB: LinkBytes(0, int(sent * PRODUCT_BYTES)), **moved},
    )


def runs(ours: Delivery, **peers: Delivery) -> Runs:
    return {"downburst": [ours] * 3, **{name: [peer] * 3 for name, peer in peers.items()}}


CLEAN = runs(delivery(), uftp=delivery(2.0, cpu_s=7.0))
LOSSES = {
    "no loss": CLEAN,
    "1 % at all": runs(delivery(1.25, sent=1.12), uftp=delivery(2.0, sent=1.15)),
    "5 % at all": runs(delivery(2.0, sent=1.4), uftp=delivery(4.0, sent=1.35)),
}


def found(of: list[Row], case: str) -> Row:
    (row,) = [row for row in of if case in row.case and row.against != "its link"]
    return row


def test_goodput_and_processor_time_at_the_asked_rate() -> None:
    goodput, cpu = rows.rows_of_asked(CLEAN)
    assert (goodput.id, goodput.ours, goodput.theirs, goodput.met) == ("1", 80.0, 40.0, None)
    assert cpu.id == "2"
    assert cpu.ours == pytest.approx(0.7 / 0.07)
    assert cpu.ratio == pytest.approx(0.1)
    assert cpu.met is True


def test_goodput_under_loss_is_a_share_of_the_own_loss_free_goodput() -> None:
    row = found(rows.rows_of_losses(LOSSES), "1 % at all: goodput")
    assert (row.ours, row.theirs, row.met) == (0.8, 1.0, False)


def test_repair_share_is_what_loss_adds_to_the_senders_link() -> None:
    row = found(rows.rows_of_losses(LOSSES), "1 % at all: repair share")
    assert row.ours == pytest.approx(7.0)
    assert row.theirs == pytest.approx(10.0)
    assert row.met is False


def test_the_hubs_account_of_repairs_stands_beside_the_count_of_its_link() -> None:
    accounted = replace(delivery(1.25, sent=1.12), accounted_repair_bytes=650_000)
    lossy = {**LOSSES, "1 % at all": runs(accounted, uftp=delivery(2.0))}
    (row, _) = [row for row in rows.rows_of_losses(lossy) if row.against == "its link"]
    assert row.ours == pytest.approx(6.5)
    assert row.theirs == pytest.approx(7.0)


def test_a_share_of_twenty_sites_is_compared_with_that_of_seven() -> None:
    few = (CLEAN, runs(delivery(sent=1.07), uftp=delivery(sent=1.12)))
    many = (CLEAN, runs(delivery(sent=1.08), uftp=delivery(sent=1.24)))
    ours, uftp = rows.rows_of_twenty(few, many, "100 Mb/s asked")
    assert ours.id == "5"
    assert "100 Mb/s asked" in ours.case
    assert ours.ours == pytest.approx(3.0)
    assert ours.ratio == pytest.approx(1.5)
    assert ours.met is False
    assert uftp.ratio == pytest.approx(19 / 7)
    assert uftp.met is None


def test_one_lossy_site_is_told_apart_from_the_others() -> None:
    lossy = runs(delivery(slow_s=1.25), uftp=delivery(2.0, slow_s=2.5, sent=1.10, received=1.10))
    of = rows.rows_of_one_slow(rows.FIVE_AT_ONE, lossy, CLEAN)
    others, itself, extra = (found(of, part) for part in ("of the others", "of that site", "extra on"))
    assert (others.ours, others.theirs, others.met) == (1.0, 1.0, True)
    assert (itself.ours, itself.theirs, itself.met) == (0.8, 0.8, False)
    assert extra.ours == pytest.approx(0.0)
    assert extra.theirs == pytest.approx(5.0)


def test_a_site_with_half_the_rate_is_judged_by_its_own_link() -> None:
    of = rows.rows_of_one_slow(rows.HALF_AT_ONE, runs(delivery(slow_s=80 / 46)), CLEAN)
    itself = found(of, "of that site")
    assert (itself.unit, itself.met) == ("of its link", True)
    assert itself.ours == pytest.approx(0.92)


def test_without_uftp_its_columns_are_empty() -> None:
    alone = {case: {"downburst": of["downburst"]} for case, of in LOSSES.items()}
    assert {row.theirs for row in rows.rows_of_losses(alone) if row.against == "uftp"} == {None}
    assert {row.met for row in rows.rows_of_fast(alone["no loss"])} == {None}


def test_a_peer_that_never_completed_gives_no_figures_instead_of_a_crash() -> None:
    nothing = Delivery(PRODUCT_BYTES, {}, 1.0, delivery().links)
    row = found(rows.rows_of_losses({**LOSSES, "no loss": runs(delivery(), uftp=nothing)}), "1 % at all: goodput")
    assert (row.ours, row.theirs) == (0.8, 0.0)
    for row in rows.rows_of_losses({**LOSSES, "1 % at all": runs(delivery(), uftp=nothing)})[:2]:
        assert (row.theirs, row.ratio) == (None, None)
    assert nothing.goodput_bps() == 0.0


def test_narrow_links_are_judged_against_the_fan_out_by_the_number_of_sites() -> None:
    of = runs(delivery(), **{rows.TLS: delivery(6.5)})
    (seven,), (twenty,) = rows.rows_of_narrow(7, of), rows.rows_of_narrow(20, of)
    assert seven.ratio == pytest.approx(6.5)
    assert (seven.met, twenty.met) == (True, False)


def test_gigabit_links_are_judged_against_what_was_asked() -> None:
    (row,) = rows.rows_of_gigabit(600_000_000, runs(delivery(80 / 590)))
    assert row.ratio == pytest.approx(590 / 600)
    assert row.met is True
    (row,) = rows.rows_of_gigabit(900_000_000, runs(delivery(80 / 870)))
    assert row.met is False


def test_as_fast_as_it_goes_each_peer_has_its_own_goal() -> None:
    peers = {rows.LIKE_US: 0.09, rows.BLASTER: 0.04, rows.UFTP: 1.0, rows.TLS: 0.1, rows.NORM: 2.0}
    of = rows.rows_of_fast(runs(delivery(0.1), **{name: delivery(took_s) for name, took_s in peers.items()}))
    goodput = {row.against: row.met for row in of if row.id == "1"}
    expected = {rows.LIKE_US: True, rows.BLASTER: False, rows.UFTP: True, rows.TLS: False, rows.NORM: None}
    assert goodput == expected
    cpu = {row.against: row.met for row in of if row.id == "2"}
    assert (cpu[rows.BLASTER], cpu[rows.UFTP], cpu[rows.TLS]) == (True, False, None)


def test_overruns_beside_busy_loops_are_those_of_the_worst_run() -> None:
    busy = {"downburst": [delivery(1.04), replace(delivery(1.04), overruns=3)]}
    dropped, repaired, rate = rows.rows_of_busy(100_000_000, busy, runs(delivery()))
    assert (dropped.ours, dropped.met) == (3, False)
    assert (repaired.ours, repaired.met) == (0.0, None)
    assert rate.ratio == pytest.approx(1 / 1.04)
    assert rate.met is True
