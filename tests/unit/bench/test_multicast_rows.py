"""From deliveries to rows: figures that can be worked out by hand."""

from dataclasses import replace

import pytest
from bench.counters import LinkBytes
from bench.delivery import HUB, Delivery
from bench.multicast_rows import LOSSES, LOSSY, SITES, Runs, rows_of_fast, rows_of_losses, rows_of_narrow
from bench.report import Row

PRODUCT_BYTES = 10_000_000


def delivery(
    took_s: float = 1.0, *, lossy_s: float = 0.0, sent: float = 1.05, received: float = 1.05, cpu_s: float = 0.7
) -> Delivery:
    """Seven sites that took as long, but for the lossy one; bytes on the links as shares of the products."""
    moved = {site: LinkBytes(int(received * PRODUCT_BYTES), 0) for site in SITES}
    return Delivery(
        product_bytes=PRODUCT_BYTES,
        took_s={site: lossy_s if lossy_s and site == LOSSY else took_s for site in SITES},
        cpu_s=cpu_s,
        links={HUB: LinkBytes(0, int(sent * PRODUCT_BYTES)), **moved},
    )


def runs(ours: Delivery, **peers: Delivery) -> Runs:
    return {"downburst": [ours] * 3, **{name: [peer] * 3 for name, peer in peers.items()}}


def all_losses() -> dict[str, Runs]:
    return {
        "no loss": runs(delivery(), uftp=delivery(2.0, cpu_s=7.0)),
        "1 % at all": runs(delivery(1.25, sent=1.12), uftp=delivery(2.0, sent=1.15)),
        "5 % at all": runs(delivery(2.0, sent=1.4), uftp=delivery(4.0, sent=1.35)),
        "5 % at one site": runs(delivery(lossy_s=1.25), uftp=delivery(2.0, lossy_s=2.5, sent=1.10, received=1.10)),
    }


def found(rows: list[Row], case: str) -> Row:
    (row,) = [row for row in rows if case in row.case and row.against != "its link"]
    return row


def test_every_case_has_its_runs() -> None:
    assert set(LOSSES) == set(all_losses())


def test_goodput_and_processor_time_without_loss() -> None:
    rows = rows_of_losses(all_losses())
    goodput, cpu = found(rows, "asked: goodput"), found(rows, "CPU per delivered byte")
    assert (goodput.ours, goodput.theirs, goodput.met) == (80.0, 40.0, None)
    assert cpu.ours == pytest.approx(0.7 / 0.07)
    assert cpu.ratio == pytest.approx(0.1)
    assert cpu.met is True


def test_goodput_under_loss_is_a_share_of_the_own_loss_free_goodput() -> None:
    row = found(rows_of_losses(all_losses()), "1 % at all: goodput")
    assert (row.ours, row.theirs, row.met) == (0.8, 1.0, False)


def test_repair_share_is_what_loss_adds_to_the_senders_link() -> None:
    row = found(rows_of_losses(all_losses()), "1 % at all: repair share")
    assert row.ours == pytest.approx(7.0)
    assert row.theirs == pytest.approx(10.0)
    assert row.met is False


def test_the_hubs_account_of_repairs_stands_beside_the_count_of_its_link() -> None:
    losses = all_losses()
    accounted = replace(delivery(1.25, sent=1.12), accounted_repair_bytes=650_000)
    losses["1 % at all"] = runs(accounted, uftp=delivery(2.0))
    (row, _) = [row for row in rows_of_losses(losses) if row.against == "its link"]
    assert row.ours == pytest.approx(6.5)
    assert row.theirs == pytest.approx(7.0)


def test_one_lossy_site_is_told_apart_from_the_others() -> None:
    rows = rows_of_losses(all_losses())
    others, itself, extra = (found(rows, part) for part in ("of the others", "of that site", "extra on"))
    assert (others.ours, others.theirs, others.met) == (1.0, 1.0, True)
    assert (itself.ours, itself.theirs, itself.met) == (0.8, 0.8, False)
    assert extra.ours == pytest.approx(0.0)
    assert extra.theirs == pytest.approx(5.0)


def test_without_uftp_its_columns_are_empty() -> None:
    alone = {case: {"downburst": of["downburst"]} for case, of in all_losses().items()}
    assert {row.theirs for row in rows_of_losses(alone) if row.against == "uftp"} == {None}


def test_a_peer_that_never_completed_gives_no_figures_instead_of_a_crash() -> None:
    losses = all_losses()
    nothing = Delivery(PRODUCT_BYTES, {}, 1.0, delivery().links)
    losses["no loss"] = runs(delivery(), uftp=nothing)
    row = found(rows_of_losses(losses), "1 % at all: goodput")
    assert (row.ours, row.theirs) == (0.8, 0.0)
    assert nothing.goodput_bps() == 0.0


def test_narrow_links_are_judged_against_the_fan_out() -> None:
    (row,) = rows_of_narrow(runs(delivery(), **{"TCP fan-out": delivery(6.5)}))
    assert row.ratio == pytest.approx(6.5)
    assert (row.met, row.against) == (True, "TCP fan-out")


def test_as_fast_as_it_goes_is_judged_against_both() -> None:
    rows = rows_of_fast(runs(delivery(0.1), uftp=delivery(1.0), **{"TCP fan-out": delivery(0.1)}))
    assert [(row.against, row.met) for row in rows[:2]] == [("uftp", True), ("TCP fan-out", False)]
