"""Rows of the bench of probes, without a network."""

from pathlib import Path

import pytest
from bench.harness.report import Row
from bench.probes import peer, tcp
from bench.probes.path import MissingError
from bench.probes.rows import Wanted, rows_of

ROW = Row("1", "a case", "ms", 1.0, "", None, 1)


def test_a_failed_measurement_is_repeated_once_and_noted() -> None:
    tries = []

    def measure(directory: Path, _wanted: Wanted) -> list[Row]:
        tries.append(directory)
        if len(tries) == 1:
            raise RuntimeError("the sender was too slow")
        return [ROW]

    assert rows_of({"knee": measure}, Wanted(runs=1, quick=True)) == (
        [ROW],
        ["knee failed and was repeated: the sender was too slow"],
    )
    assert len(set(tries)) == 2


@pytest.mark.parametrize("failure", [MissingError("no iperf3"), pytest.skip.Exception("the wire lagged")])
def test_a_row_that_can_not_be_measured_is_left_out_by_name(failure: BaseException) -> None:
    tries = []

    def measure(directory: Path, _wanted: Wanted) -> list[Row]:
        tries.append(directory)
        raise failure

    rows, notes = rows_of({"iperf3": measure, "other": lambda *_: [ROW]}, Wanted(runs=1, quick=True))
    assert (rows, len(tries)) == ([ROW], 1)
    assert notes == [f"NOT MEASURED, iperf3: {failure}"]


def test_a_peer_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="iperf3 is not installed"):
        peer.iperf3_rows(tmp_path, 1)


def test_a_trial_of_two_stacks_is_a_row_with_shares_and_fairness() -> None:
    flows = [
        {"congestion": "cubic", "reverse": False, "goodput_bps": 20e6, "retransmits": 3},
        {"congestion": "bbr", "reverse": False, "goodput_bps": 10e6, "retransmits": 5},
        {"congestion": "cubic", "reverse": True, "goodput_bps": 30e6, "retransmits": 0},
    ]
    trial = {"reason": None, "fairness": 0.9, "limited": False, "flows": flows}
    row = tcp._trial_row("S1", {"reverse": ["cubic"]}, trial)
    assert row.ours == 30
    assert row.case == (
        "stacks beside reverse cubic: cubic 20.0 Mb/s (3 sent again), bbr 10.0 Mb/s (5 sent again), fairness 0.90"
    )
