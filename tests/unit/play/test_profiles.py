"""Profiles have the statistics that they claim: the published ones of the feeds that they represent."""

from functools import cache
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from downburst.recordings.traces import parse
from downburst_analyze.burstiness import Burstiness, FeedFigures
from downburst_app.cli.feeds.generate import generate
from downburst_app.play.generator import until
from downburst_app.play.profiles import profiles

SEED = 4
APP = typer.Typer()
APP.command()(generate)


@cache
def figures(profile: str, *, hours: float) -> FeedFigures:
    print(f"profile {profile}, seed {SEED}")
    products = list(until(profiles()[profile].products(seed=SEED), seconds=3600 * hours))
    seen = Burstiness()
    seen.add(
        np.array([int(product.at_s * 1e6) for product in products], dtype=np.int64),
        np.array([product.size_bytes for product in products], dtype=np.float64),
    )
    return seen.figures()


@pytest.mark.all
def test_a_day_of_conduit_has_the_published_volume_and_peak() -> None:
    day = figures("conduit", hours=24)
    assert day.bytes == pytest.approx(60e9, rel=0.06)
    assert day.widths[60].peak_bps * 60 / 8 == pytest.approx(250e6, rel=0.12), "bytes in the busiest minute"
    assert day.widths[60].peak_to_mean == pytest.approx(6.0, rel=0.12)
    assert day.sizes.mean_bytes == pytest.approx(90e3, rel=0.03)
    assert day.worst_hour_over_mean == pytest.approx(2.7, rel=0.15)


@pytest.mark.all
def test_conduit_is_silent_in_one_gap_of_a_hundred_and_never_for_a_minute() -> None:
    day = figures("conduit", hours=24)
    assert day.silence[1].share_of_gaps == pytest.approx(0.0088, rel=0.25)
    assert day.silence[1].share_of_time > 0.5, "which hold most of the time"
    assert day.silence[-1].gaps == 0, "so a circuit that takes a minute is never given back"


@pytest.mark.all
def test_a_day_of_nexrad2_has_the_published_volume_and_peak() -> None:
    day = figures("nexrad2", hours=24)
    assert day.bytes == pytest.approx(56e9, rel=0.03)
    assert day.widths[60].peak_bps * 60 / 8 == pytest.approx(58e6, rel=0.06)
    assert day.widths[60].peak_to_mean == pytest.approx(1.49, rel=0.05)
    assert day.worst_hour_over_mean == pytest.approx(1.4, rel=0.05)
    assert day.widths[1].dispersion_of_products < 2


def test_an_hour_of_satellite_images_has_the_published_volume_and_count() -> None:
    hour = figures("satellite", hours=1)
    assert hour.products == 6_528
    assert hour.bytes == pytest.approx(15.264e9, rel=0.08)
    assert hour.sizes.mean_bytes == pytest.approx(2.3e6, rel=0.08)
    assert hour.widths[600].peak_to_mean < 1.2, "all sectors come within ten minutes"
    assert hour.widths[60].peak_to_mean > 4, "most of them in one"


def test_objects_are_7_gb_and_rare() -> None:
    objects = figures("objects", hours=3)
    assert objects.products == 18
    assert objects.sizes.mean_bytes == pytest.approx(7.33e9, rel=0.01)


def test_notifications_are_ten_thousand_a_second() -> None:
    second = figures("notifications", hours=5 / 3600)
    assert second.products == pytest.approx(50_000, rel=0.02)
    assert second.sizes.mean_bytes == pytest.approx(1_050, rel=0.01)


@pytest.mark.parametrize("name", profiles())
def test_a_seed_repeats_its_products_in_order_with_ids_of_their_own(name: str) -> None:
    once = list(islice(profiles()[name].products(seed=SEED), 2_000))
    assert once == list(islice(profiles()[name].products(seed=SEED), 2_000))
    assert len({product.product_id for product in once}) == len(once)
    assert all(earlier.at_s <= later.at_s for earlier, later in pairwise(once))
    assert all(product.size_bytes > 0 for product in once)


def test_the_command_writes_a_trace_that_is_read_again(tmp_path: Path) -> None:
    out = tmp_path / "text.txt"
    done = CliRunner().invoke(APP, ["text", "--hours", "0.1", "--seed", str(SEED), "--out", str(out)])
    assert done.exit_code == 0
    expected = list(until(profiles()["text"].products(seed=SEED), seconds=360))
    assert [arrival.size_bytes for arrival in parse(out)] == [product.size_bytes for product in expected]


def test_an_unknown_profile_is_one_sentence() -> None:
    done = CliRunner().invoke(APP, ["none"])
    assert done.exit_code == 2
    assert done.stderr.startswith("'none' is not a profile; choose one of ngrid")
