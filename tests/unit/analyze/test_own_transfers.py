"""Transfers of one's own hub: their conditions, their sessions, and an export in which nobody is named."""

import csv
import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from downburst.foundation.errors import BadInput
from downburst.recordings.recording import Transfer
from downburst_analyze.pairs.learning import PairMinute
from downburst_analyze.sessions import SessionStudy, sessions
from downburst_analyze.transfers.conditions import conditions_of
from downburst_analyze.transfers.deliveries import Delivery, conditions, minutes_of
from downburst_analyze.transfers.exporting import exported, hashed, key_of
from unit.analyze.test_analyze import document, run

SEED = int(os.environ.get("DOWNBURST_SEED", "1"))
"""`DOWNBURST_SEED=n pytest tests/unit/analyze/test_own_transfers.py` plays other logs."""
KEY = b"k" * 32
NAMES = ("unl.edu", "192.0.2.7", "wisc.edu")


def transfers(count: int = 400) -> list[Transfer]:
    random = np.random.default_rng(SEED)
    starts = np.sort(random.uniform(0, 40_000, count)).tolist()
    return [
        Transfer(round(at * 1e6), round(float(random.uniform(1, 90)), 3), 10**8 + n, NAMES[int(random.integers(3))])
        for n, at in enumerate(starts)
    ]


@pytest.mark.parametrize(
    ("quartiles_mbps", "threshold_gb"),
    # Throughput of single transfers, NCAR to NICS and SLAC to BNL: least, first quartile, median, third, greatest.
    [((1.0, 296.9, 468.0, 681.7, 4227.0), 51.1), ((0.1, 40.0, 110.0, 191.0, 2560.0), 14.3)],
)
def test_published_throughputs_give_the_published_thresholds(
    quartiles_mbps: tuple[float, ...], threshold_gb: float
) -> None:
    shares = np.random.default_rng(SEED).permutation(np.linspace(0, 1, 20_001))
    rates_bps = np.interp(shares, [0, 0.25, 0.5, 0.75, 1], quartiles_mbps) * 1e6
    study = SessionStudy()
    study.take(Transfer(n * 60_000_000, 10**9 * 8 / rate, 10**9, "nics") for n, rate in enumerate(rates_bps.tolist()))
    (suited,) = study.figures([60.0]).suitability
    assert suited.threshold_bytes == pytest.approx(threshold_gb * 1e9, rel=0.01)


def test_an_export_names_nobody_and_has_the_same_sessions() -> None:
    log = transfers()
    text = "".join(exported(log, {}, KEY))
    assert not any(name in text for name in NAMES)
    rows = list(csv.DictReader(text.splitlines()))
    read = [
        Transfer(int(row["start_us"]), int(row["duration_us"]) / 1e6, int(row["size_bytes"]), row["peer"])
        for row in rows
    ]
    merged = [(one.start_us, one.end_us, one.transfers, one.size_bytes) for one in sessions(read)]
    assert merged == [(one.start_us, one.end_us, one.transfers, one.size_bytes) for one in sessions(log)]
    assert {row["peer"] for row in rows} == {hashed(name, KEY) for name in NAMES}
    assert hashed("unl.edu", KEY) != hashed("unl.edu", b"x" * 32), "another key, another hash"
    assert re.fullmatch("[0-9a-f]{16}", hashed("unl.edu", KEY))


def test_conditions_travel_with_the_export(tmp_path: Path) -> None:
    known = {"connections": np.array([4.0, np.nan]), "round trip": np.array([36.5, 36.7])}
    path = tmp_path / "own.csv"
    path.write_text("".join(exported(transfers(2), known, KEY)))
    assert path.read_text().splitlines()[0] == "start_us,duration_us,size_bytes,peer,connections,round_trip_ms"
    found = conditions_of(path)
    assert set(found) == set(known)
    for name, values in known.items():
        assert found[name].tolist() == pytest.approx(values.tolist(), nan_ok=True)


def test_a_packed_log_may_have_conditions_and_most_have_none(tmp_path: Path) -> None:
    packed, plain = tmp_path / "own.csv.gz", tmp_path / "plain.csv"
    packed.write_bytes(gzip.compress(b"start_s,duration_s,size_bytes,senders\n0,1,1,3\n\n1,1,1,\n"))
    assert conditions_of(packed)["senders"].tolist() == pytest.approx([3.0, np.nan], nan_ok=True)
    plain.write_text("start_s,duration_s,size_bytes\n0,1,1\n")
    assert conditions_of(plain) == {}


@pytest.mark.parametrize("cell", ["many", "-1", "inf", "1e10"])
def test_a_condition_that_is_no_number_is_refused_with_its_line(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text(f"start_s,duration_s,size_bytes,senders\n0,1,1,{cell}\n")
    with pytest.raises(BadInput, match=r"own\.csv, line 2: .* is not a number for the column senders"):
        conditions_of(path)


def test_deliveries_are_transfers_with_conditions_and_minutes() -> None:
    found = [
        Delivery("NGRID", "a", 59_000_000, 2.0, 7, connections=3, round_trip_ms=20.0),
        Delivery("NGRID", "b", 1_000_000, 2.0, 9),
    ]
    assert found[0].transfer == Transfer(59_000_000, 2.0, 7, "a")
    known = conditions(found)
    assert set(known) == {"connections", "round trip"}, "nobody recorded the senders"
    assert known["connections"].tolist() == pytest.approx([3.0, np.nan], nan_ok=True)
    assert minutes_of(found) == [PairMinute("NGRID", "b", 0, 9), PairMinute("NGRID", "a", 1, 7)]


def test_a_key_is_read_made_up_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"0123456789abcdef" * 2 + b"\n")
    assert key_of(path) == b"0123456789abcdef" * 2
    assert key_of(None) != key_of(None)
    path.write_bytes(b"short\n")
    with pytest.raises(BadInput, match="under 32 bytes"):
        key_of(path)
    with pytest.raises(BadInput, match="can't be read"):
        key_of(tmp_path / "none")


def test_the_command_exports_a_log_which_it_reads_again(tmp_path: Path) -> None:
    log, out, key = tmp_path / "log.csv", tmp_path / "out.csv", tmp_path / "key"
    key.write_bytes(KEY)
    rows = (
        f"{one.start_us},{one.duration_s},{one.size_bytes},{one.peer},{1 + n % 4}"
        for n, one in enumerate(transfers())
    )
    log.write_text("start_us,duration_s,size_bytes,peer,connections\n" + "\n".join(rows))
    clear = document(log, "--export", out, "--key-file", key)
    again = document(out)
    assert clear["sessions"]["sessions"] == again["sessions"]["sessions"] > 3
    assert clear["sessions"]["suitability"] == again["sessions"]["suitability"]
    assert {one["name"] for one in again["throughput"]["factors"]} >= {"connections", "concurrency", "peer"}
    assert not any(name in out.read_text() for name in NAMES)
    code, _, err = run(log, "--export", tmp_path / "none" / "out.csv")
    assert (code, "can't be written" in err) == (2, True)


def test_the_command_learns_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [(f"F,big,{day * 1440 + at},2000") for day in range(2) for at in (10, 500)]
    path.write_text("feed,site,minute,bytes\n" + "\n".join(rows))
    found = document(path, "--heavy", "1k")
    assert [(one["feed"], one["site"], one["heavy_minutes"]) for one in found["pairs"]] == [("F", "big", 4)]
    assert [one["covered_share"] for one in found["days"]] == [0.0, 1.0]
    code, out, _ = run(path, "--heavy", "1k")
    assert (code, out.splitlines()[-1].startswith("1 pair of feed and site is over")) == (0, True)
    path.write_text("feed,site,minute,bytes\n" + "\n".join(reversed(rows)))
    assert run(path, "--heavy", "1k")[0] == 2
    assert json.loads(run(path, "--heavy", "1k", "--sort", "--json")[1])["pairs"] == found["pairs"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name either a FILE, or a feed of a hub with --hub"),
        (["x.csv", "--hub", "NGRID"], "name either a FILE, or a feed of a hub with --hub"),
        (["x.csv", "--heavy", "1k", "--html", "y"], "--heavy learns pairs, and --html has no use with it"),
        (["x.csv", "--heavy", "much"], "'much' is not a size; write 1G, 100M, 64k or bytes"),
        (["x.csv", "--heavy", "1k"], "x.csv can't be read"),
    ],
)
def test_options_that_do_not_fit_are_refused(arguments: list[str], says: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
