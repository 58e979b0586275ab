"""Advice on retention: volumes from minutes, hours that fit, bytes that an outage needs, and the warning."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downburst.domain.feeds import Feed, TrafficMinute
from downburst.ledger import Ledger
from downburst_app.cli import main
from downburst_app.cli.client import HubClient
from downburst_app.retention.advice import MEMORY_BYTES, RECORD_BYTES, Advice, Retention, Volume, advise, size, volume

GB = 10**9
MINUTE = 29_000_000


def minute(at: int, count: int, *, products: int = 1, feed: str = "NGRID") -> TrafficMinute:
    return TrafficMinute(feed, MINUTE + at, products, count, count)


def measured(mean: float, worst: float | None = None, *, hours: float = 48.0) -> Volume:
    return Volume(hours, mean, 0.0, worst)


def kept(hours: float = 48.0, count: int = 80 * GB) -> Retention:
    return Retention("NGRID", hours, count)


def test_a_volume_counts_silence_and_finds_the_worst_hour_wherever_it_begins() -> None:
    minutes = [minute(at, 10) for at in range(120)] + [minute(175, 0), minute(30, 0, feed="OTHER")]
    minutes += [minute(at, 100, products=2) for at in range(130, 150)]
    seen = volume(minutes, feed="NGRID", until_minute=MINUTE + 239)
    assert seen.measured_hours == 4
    assert seen.mean_bytes_per_hour == (1200 + 2000) / 4
    # The minutes 90 to 149: thirty of ten bytes and twenty of a hundred.
    assert seen.worst_hour_bytes == 30 * 10 + 2000
    assert seen.worst_hour_products == 30 + 40


def test_less_than_an_hour_has_a_mean_and_no_worst_hour() -> None:
    seen = volume([minute(0, 100), minute(29, 200)], feed="NGRID", until_minute=0)
    assert (seen.measured_hours, seen.mean_bytes_per_hour, seen.worst_hour_bytes) == (0.5, 600, None)


def test_nothing_measured_means_nothing_known() -> None:
    seen = volume([minute(0, 1, feed="OTHER")], feed="NGRID", until_minute=MINUTE)
    advice = advise(kept(hours=1.0), seen, outage_hours=2.0)
    assert (advice.hours_that_fit, advice.bytes_needed, advice.bytes_needed_worst) == (None, None, None)
    assert advice.warning is not None
    assert "shorter than an outage of 2 h" in advice.warning


@pytest.mark.parametrize(
    ("hours", "outage", "mean", "worst", "said"),
    [
        (48, 24, 1 * GB, 2 * GB, None),
        (48, None, 50 * GB, 90 * GB, None),
        (2, 24, 1 * GB, 2 * GB, "is kept for 2 h, shorter than an outage of 24 h"),
        (48, 24, 8 * GB, 9 * GB, "80.0 GB hold 10.0 h at the mean rate"),
        (2, 24, 80 * GB, 90 * GB, "80.0 GB hold 1.0 h at the mean rate"),
        (48, 24, 1 * GB, 8 * GB, "80.0 GB hold 10.0 h at the worst hour's rate"),
        (48, 24, 1 * GB, None, None),
    ],
)
def test_the_warning_names_what_is_too_little(
    hours: float, outage: float | None, mean: float, worst: float | None, said: str | None
) -> None:
    advice = advise(kept(hours), measured(mean, worst), outage_hours=outage)
    assert (advice.warning is None) if said is None else (said in (advice.warning or "")), advice.warning


def test_the_room_of_the_segment_on_its_way_out_is_not_promised() -> None:
    # A segment takes an eighth of a small ceiling, and never more than 256 MiB.
    assert advise(kept(count=8000), measured(1000)).hours_that_fit == 7
    assert advise(kept(count=80 * GB), measured(1 * GB)).hours_that_fit == pytest.approx(80 - 0.268435456)


def test_small_products_cost_their_records_and_the_memory_of_a_week() -> None:
    text = Volume(48.0, 1_000_000, 1_000)
    fit = advise(kept(count=800_000_000), text).hours_that_fit
    assert fit == pytest.approx((700_000_000 - 168 * 1_000 * MEMORY_BYTES) / (1_000_000 + 1_000 * RECORD_BYTES))
    assert advise(kept(count=1_000_000), text).hours_that_fit == 0


@given(
    outage=st.floats(0.1, 1000),
    mean=st.floats(1e3, 1e12),
    products=st.floats(0, 1e6),
    factor=st.floats(1, 10),
)
def test_following_the_advice_ends_the_warning(outage: float, mean: float, products: float, factor: float) -> None:
    seen = Volume(100.0, mean, products, mean * factor, products)
    advice = advise(kept(1e6, 1), seen, outage_hours=outage)
    assert advice.warning is not None
    assert advice.bytes_needed_worst is not None
    better = advise(kept(1e6, advice.bytes_needed_worst + 2), seen, outage_hours=outage)
    assert better.warning is None
    assert better.hours_that_fit_worst == pytest.approx(outage, rel=0.01, abs=0.01)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 1000)), min_size=1, max_size=60, unique_by=lambda m: m[0])
)
def test_the_worst_hour_is_the_greatest_of_all_windows(points: list[tuple[int, int]]) -> None:
    seen = volume([minute(at, count) for at, count in points], feed="NGRID", until_minute=MINUTE + 400)
    windows = [sum(count for at, count in points if start <= at < start + 60) for start in range(-60, 301)]
    assert seen.worst_hour_bytes == max(windows)


def test_sizes_are_written_for_people() -> None:
    assert [size(count) for count in (0, 999, 1500, 2e6, 3.25e9, 1e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.0 MB",
        "3.2 GB",
        "10.0 TB",
    ]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    ledger = Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    with ledger.transaction() as tx:
        tx.feeds.add(Feed("NGRID", retention_hours=2.0, retention_bytes=80 * GB))
        tx.feeds.add(Feed("IDS|DDPLUS", retention_hours=48.0))
        tx.measured.traffic.add([minute(at, GB // 60) for at in range(120)])
    ledger.close()
    return tmp_path


def advised(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, dict[str, Any]]:
    with pytest.raises(SystemExit) as end:
        main(["log", "advise", "--json", *options])
    assert not end.value.code
    return {advice["feed"]: advice for advice in json.loads(capsys.readouterr().out)}


def test_the_command_advises_from_the_ledger(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = advised(capsys, "--data-dir", str(data_dir), "--outage-hours", "24")
    assert set(found) == {"NGRID", "IDS|DDPLUS"}
    assert set(found["NGRID"]) == set(Advice.__dataclass_fields__)
    assert found["NGRID"]["hours_that_fit"] == pytest.approx(80, rel=0.01)
    assert "--retention-hours 24" in found["NGRID"]["warning"]
    assert found["IDS|DDPLUS"]["warning"] is None
    assert set(advised(capsys, "--data-dir", str(data_dir), "--feed", "NGRID")) == {"NGRID"}


def test_advice_leaves_the_ledger_as_it_is(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(data_dir / "ledger.sqlite") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    connection.close()
    before = (data_dir / "ledger.sqlite").read_bytes()
    with pytest.raises(SystemExit) as end:
        main(["log", "advise", "--data-dir", str(data_dir)])
    assert end.value.code
    assert "has schema 0000" in capsys.readouterr().err
    assert (data_dir / "ledger.sqlite").read_bytes() == before


def test_the_hub_s_own_outage_is_asked_for_where_none_is_said(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOWNBURST_OUTAGE_HOURS", "24")
    found = advised(capsys, "--data-dir", str(data_dir))
    assert "shorter than an outage of 24 h" in found["NGRID"]["warning"]


def test_the_table_ends_with_the_warning(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["log", "advise", "--data-dir", str(data_dir), "--outage-hours", "24"])
    shown = capsys.readouterr().out
    assert "NGRID is kept for 2 h, shorter than an outage of 24 h" in shown


def test_a_hub_is_asked_over_http(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        ("v1", "feeds"): [{"feed": "NGRID", "retention_hours": 2.0, "retention_bytes": 80 * GB}],
        ("v1", "overview"): {
            "feeds": [{"feed": "NGRID", "rate_history": [8e6] * 120, "mean_bps": 8e6, "bytes": GB, "products": 1000}]
        },
    }
    monkeypatch.setattr(HubClient, "ask", lambda _self, _method, *path: answers[path])
    found = advised(capsys, "--hub", "http://hub.test")["NGRID"]
    assert found["mean_bytes_per_hour"] == 3.6e9
    assert found["measured_hours"] == pytest.approx(1 / 30)
    assert found["worst_hour_bytes"] is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [(("--data-dir", "{empty}"), "there is no ledger"), (("--data-dir", "{full}", "--feed", "X"), "no feed X")],
)
def test_what_is_not_there_is_said(
    options: tuple[str, ...], sentence: str, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data_dir / "empty").mkdir()
    given_options = [option.format(empty=data_dir / "empty", full=data_dir) for option in options]
    with pytest.raises(SystemExit) as end:
        main(["log", "advise", *given_options])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err
    assert not (data_dir / "empty" / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("given_options", "passed"),
    [
        (["stat", "--json"], ["stat", "--json"]),
        (["verify"], ["verify"]),
        (["tail", "-n", "5", "-f"], ["tail", "--lines=5", "--follow"]),
        (["cat", "--feed", "IDS|DDPLUS", "--id", "-a b"], ["cat", "--id=-a b", "--feed=IDS|DDPLUS"]),
        (["export", "--to", "out", "--from", "0", "--until", "9"], ["export", "--to=out", "--from=0", "--until=9"]),
    ],
)
def test_options_are_passed_to_the_node(
    given_options: list[str], passed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class BecameNodeError(Exception):
        pass

    became: list[list[str]] = []

    def become(path: str, argv: list[str]) -> None:
        became.append([path, *argv])
        raise BecameNodeError

    monkeypatch.setattr("os.execv", become)
    monkeypatch.setenv("DOWNBURST_NODE", "/bin/true")
    with pytest.raises(BecameNodeError):
        main(["log", given_options[0], "--data-dir", str(tmp_path), *given_options[1:]])
    assert became == [["/bin/true", "/bin/true", "log", *passed, "--", str(tmp_path)]]
