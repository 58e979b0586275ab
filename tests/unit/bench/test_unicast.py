"""The course of the measurement: choice of rows, turns, failures. No lab is built."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.harness.command import kept
from bench.harness.fan_out import FanOut, Stream
from bench.harness.report import Row
from bench.unicast import __main__ as command
from bench.unicast import cases
from bench.unicast.cases import FULL, Bench

from kit.namespaces import Lab


class Fake:
    """Finishes instantly, or fails the given number of times."""

    def __init__(self, name: str, calls: list[str], *, failures: int = 0) -> None:
        self.name, self.calls, self.failures = name, calls, failures

    def fan_out(self, lab: Lab, directory: Path, stream: Stream) -> FanOut:
        assert directory.is_dir()
        self.calls.append(self.name)
        if self.failures:
            self.failures -= 1
            raise RuntimeError("a site lacked products")
        return FanOut(stream.products, stream.product_bytes, 8, 1.0, 1.0)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    @contextmanager
    def lab(sites: int) -> Iterator[Lab]:
        yield Lab(["hub", *(f"site{number}" for number in range(sites))])

    monkeypatch.setattr(cases, "_lab", lab)
    return Bench(tmp_path, 2, FULL)


def test_contenders_take_turns(bench: Bench, tmp_path: Path) -> None:
    calls: list[str] = []
    runs = bench._take_turns("a case", [Fake("a", calls), Fake("b", calls)], Stream(5, 10))
    assert calls == ["a", "b", "a", "b"]
    assert [len(of_one) for of_one in runs.values()] == [2, 2]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_failed_is_repeated_once_and_noted(bench: Bench) -> None:
    calls: list[str] = []
    bench._take_turns("a case", [Fake("a", calls, failures=1)], Stream(5, 10))
    assert len(calls) == 3
    assert bench.notes == ["a case: a failed and was repeated: a site lacked products"]


def test_a_case_that_fails_twice_is_noted_and_the_others_go_on(bench: Bench) -> None:
    def fails(bench: Bench) -> list[Row]:
        """Row 99."""
        bench._take_turns("a case", [Fake("a", [], failures=2)], Stream(5, 10))
        return []

    assert kept(bench, fails) == []
    assert bench.notes[-1] == "NOT MEASURED, Row 99. a site lacked products"


def test_rows_are_chosen_by_number_and_those_of_one_case_are_measured_once() -> None:
    assert command._rows("1, 4,11") == ["1", "4", "11"]
    assert command._cases(["1", "4", "11"]) == [Bench.small, Bench.warnings]
    with pytest.raises(argparse.ArgumentTypeError, match="there is no row 13, x; there are 1, 2"):
        command._rows("1,13,x")


def test_a_small_scale_still_does_something() -> None:
    small = FULL.times(0.001)
    assert (small.small_products, small.large_products, small.bursts) == (100, 1, 1)
    assert small.outage.away_s == pytest.approx(0.072)
