"""Factors of throughput: synthetic logs in which a single factor counts."""

import os
from pathlib import Path

import numpy as np
import pytest

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Transfer
from downburst_analyze.counters import Counters, counters
from downburst_analyze.variance import VarianceFigures, VarianceStudy, predicted_bps
from downburst_scheduler.figures.histograms import Floats
from downburst_scheduler.models.queues import round_robin

SEED = int(os.environ.get("DOWNBURST_SEED", "1"))
"""`DOWNBURST_SEED=n pytest tests/unit/analyze/test_variance.py` plays other logs."""


def studied(start_s: Floats, took_s: Floats, size_bytes: Floats, known: Counters | None = None) -> VarianceFigures:
    study = VarianceStudy()
    rows = zip(start_s.tolist(), took_s.tolist(), size_bytes.tolist(), strict=True)
    passed = list(study.passing(Transfer(round(at * 1e6), took, int(size), "") for at, took, size in rows))
    assert len(passed) == len(start_s)
    found = study.figures(None if known is None else {"": known})
    assert found is not None
    return found


def shared_line(random: np.random.Generator, count: int = 2_000) -> tuple[Floats, Floats, Floats]:
    """Transfers that evenly share a gigabit line, which is busy seven tenths of the time."""
    start_s = np.sort(random.uniform(0, count * 1.0, count))
    size_bytes = random.uniform(0.3, 1.0, count) * 135e6
    return start_s, round_robin(start_s, size_bytes * 8 / 1e9), size_bytes


def throttled(random: np.random.Generator, count: int = 2_000) -> tuple[Floats, Floats, Floats, Counters]:
    """Transfers limited by a disk whose rate changes each ten seconds, whatever their number; `iowait` shows it."""
    start_s = np.sort(random.uniform(0, count * 1.0, count))
    steps = np.arange(0, count + 20, 10)
    iowait = random.uniform(0.1, 0.9, len(steps))
    rate_bps = 1e9 * (1 - iowait[(start_s // 10).astype(int)])
    size_bytes = np.full(count, 50e6)
    noise = random.uniform(0, 1, len(steps))
    known = Counters((steps * 1e6).astype(np.int64), {"iowait": iowait, "net_eth0": noise})
    return start_s, size_bytes * 8 / rate_bps, size_bytes, known


def test_where_only_concurrency_counts_it_predicts_the_throughput() -> None:
    start_s, took_s, size_bytes = shared_line(np.random.default_rng(SEED))
    found = studied(start_s, took_s, size_bytes)
    first = found.factors[0]
    assert first.name == "concurrency"
    assert first.pearson is not None
    assert first.pearson > 0.95
    assert first.spearman is not None
    assert first.spearman > 0.95
    assert 0.7 < found.network_share <= first.explained
    assert found.sentence.endswith("so a circuit may help")
    assert predicted_bps(start_s, start_s + took_s, 1e9) == pytest.approx(size_bytes * 8 / took_s, rel=1e-6)


def test_where_the_disk_counts_concurrency_does_not_and_no_circuit_is_advised() -> None:
    start_s, took_s, size_bytes, known = throttled(np.random.default_rng(SEED))
    found = studied(start_s, took_s, size_bytes, known)
    assert [one.name for one in found.factors[:1]] == ["iowait"]
    assert found.factors[0].explained > 0.8
    by_name = {one.name: one for one in found.factors}
    assert abs(by_name["net_eth0"].pearson or 0) < 0.2
    assert found.network_share < 0.25
    assert "iowait explains most of the variance" in found.sentence
    assert found.sentence.endswith("so there is no evidence that a circuit would help")


def test_a_disk_at_the_other_end_is_found_by_the_samples_of_its_host(tmp_path: Path) -> None:
    start_s, took_s, size_bytes, known = throttled(np.random.default_rng(SEED))
    study, near = VarianceStudy(), np.random.default_rng(SEED + 1).random(len(start_s)) < 0.3
    # Transfers to the other site have a steady rate, and its host has no trouble.
    took_s = np.where(near, 0.5, took_s)
    rows = zip(start_s.tolist(), took_s.tolist(), size_bytes.tolist(), near.tolist(), strict=True)
    list(study.passing(Transfer(round(at * 1e6), took, int(size), "bc"[here]) for at, took, size, here in rows))
    path = tmp_path / "hosts.csv"
    lines = ["host,time_s,iowait,net_eth0"]
    for at_us, iowait in zip(known.at_us.tolist(), known.columns["iowait"].tolist(), strict=True):
        lines += [f"{host},{at_us / 1e6},{value},1" for host, value in (("hub", 0.1), ("b", iowait), ("z", 9))]
    path.write_text("\n".join(lines))
    found = study.figures(counters(path))
    assert found is not None
    assert found.factors[0].name == "iowait at the site"
    assert {one.name for one in found.factors} >= {"iowait at the hub", "net_eth0 at the hub", "net_eth0 at the site"}
    assert found.sentence.endswith("so there is no evidence that a circuit would help")


def test_conditions_of_transfers_are_factors_where_most_are_known() -> None:
    random = np.random.default_rng(SEED)
    streams = random.integers(1, 9, 400)
    study = VarianceStudy()
    rows = [Transfer(n * 10_000_000, 8.0 / streams[n], 10**8, "a") for n in range(400)]
    list(study.passing([Transfer(0, 0.0, 5, "a"), *rows]))
    values = np.append(np.nan, streams.astype(np.float64))
    seldom = np.where(np.arange(401) < 100, 1.0, np.nan)
    found = study.figures(conditions={"connections": values, "senders": seldom})
    assert found is not None
    first = found.factors[0]
    assert (first.name, first.of_network) == ("connections", False)
    assert first.explained == pytest.approx(1.0, abs=0.05)
    assert "senders" not in {one.name for one in found.factors}


def test_noise_explains_nothing_and_constant_values_neither() -> None:
    random = np.random.default_rng(SEED)
    start_s = np.arange(1_000, dtype=np.float64) * 100
    found = studied(start_s, random.uniform(1.0, 2.0, 1_000), np.full(1_000, 1e8))
    assert max(one.explained for one in found.factors) < 0.1
    assert {one.name: one.pearson for one in found.factors}["size"] is None
    assert found.sentence.startswith("no known factor explains more than")


def test_a_peer_that_is_slow_is_found() -> None:
    study = VarianceStudy()
    rows = [Transfer(n * 10_000_000, 1.0 if n % 3 else 8.0, 10**8, "near" if n % 3 else "far") for n in range(300)]
    list(study.passing(rows))
    found = study.figures()
    assert found is not None
    assert (found.factors[0].name, found.factors[0].spearman) == ("peer", None)
    assert found.factors[0].explained == pytest.approx(1)


def test_few_transfers_say_nothing() -> None:
    study = VarianceStudy()
    list(study.passing(Transfer(n, 1.0, 1, "") for n in range(29)))
    assert study.figures() is None


def test_counters_are_read_and_totals_turned_into_rates(tmp_path: Path) -> None:
    path = tmp_path / "host.csv"
    path.write_text("time_s,net_eth0_bytes_total,iowait\n0,1000,0.1\n2,5000,0.3\n4,5000,0.2\n")
    found = counters(path)[""]
    assert found.at_us.tolist() == [0, 2_000_000, 4_000_000]
    assert {name: values.tolist() for name, values in found.columns.items()} == {
        "net_eth0_bytes": [2000, 0, 0],
        "iowait": [0.1, 0.3, 0.2],
    }


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "host.csv, line 1: no column"),
        ("start,load\n1,1\n2,2\n", "host.csv, line 1: no column is called time"),
        ("time,load\n1,1\n", "host.csv: counters need at least 2 rows"),
        ("time,load\n1,1\n1,2\n", "host.csv, line 3: its time is not after"),
        ("time,load\n1,1\n2,nan\n", "host.csv, line 3: 'nan' is not a number"),
        ("time,load\n1,1\n2\n", "host.csv, line 3: the row has 1 columns and the first line 2"),
        ("time,host,load\n1,a,1\n1,b,1\n2,a,1\n", "host.csv: counters of b need at least 2 rows; there are 1"),
        ("time,host,load\n1,a,1\n1,b,1\n1,a,1\n", "host.csv, line 4: its time is not after"),
        ("time," + ",".join("abcde" * 13) + "\n", "host.csv, line 1: there are 65 columns; leave at most 64"),
    ],
)
def test_counters_that_can_not_be_read_are_refused_with_the_line(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "host.csv"
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        counters(path)
    assert refused.value.sentence.startswith(sentence)
