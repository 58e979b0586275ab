"""The course of the measurement: cases, turns, retries, missing peers. No lab is built."""

import argparse
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from bench.harness.command import kept
from bench.harness.counters import LinkBytes
from bench.harness.delivery import HUB, Delivery, digest, source_file
from bench.harness.report import Row
from bench.harness.turns import Entry, Turns
from bench.multicast import __main__ as command
from bench.multicast.cases import FULL, Bench
from bench.multicast.rows import SITES, TITLES
from bench.peers import packaged
from bench.peers.file_peer import sent_by_program

from kit.namespaces import Lab

LAB = Lab((HUB, *SITES))


class Fake:
    """Delivers instantly, or fails the given number of times."""

    def __init__(self, name: str, calls: list[str], *, failures: int = 0, sites: int = len(SITES)) -> None:
        self.name, self.calls, self.failures, self.sites = name, calls, failures, sites

    def __call__(self, lab: Lab, directory: Path) -> "Fake":
        assert lab is LAB
        assert directory.is_dir()
        return self

    def deliver(self, product_bytes: int) -> Delivery:
        self.calls.append(f"{self.name} {product_bytes}")
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the site did not come")
        took_s = dict.fromkeys(SITES[: self.sites], 1.0)
        return Delivery(product_bytes, took_s, 1.0, {HUB: LinkBytes(0, product_bytes)})

    def stop(self) -> None:
        self.calls.append(f"{self.name} stops")


def take(tmp_path: Path, *fakes: Fake, runs: int = 2) -> list[str]:
    """Notes of two turns."""
    notes: list[str] = []
    entries = {fake.name: Entry(fake, runs) for fake in fakes}
    taken = Turns(tmp_path, notes).take("a case", LAB, entries, 100)
    assert [len(deliveries) for deliveries in taken.values()] == [runs] * len(fakes)
    assert list(tmp_path.iterdir()) == []
    return notes


def test_contenders_take_turns_and_are_stopped_after_each_run(tmp_path: Path) -> None:
    calls: list[str] = []
    assert take(tmp_path, Fake("a", calls), Fake("b", calls)) == []
    assert calls == ["a 100", "a stops", "b 100", "b stops"] * 2


def test_a_contender_may_have_fewer_runs_than_another(tmp_path: Path) -> None:
    calls: list[str] = []
    entries = {"a": Entry(Fake("a", calls), 2), "b": Entry(Fake("b", calls), 1)}
    runs = Turns(tmp_path, []).take("a case", LAB, entries, 7)
    assert [len(deliveries) for deliveries in runs.values()] == [2, 1]
    assert [call for call in calls if "stops" not in call] == ["a 7", "b 7", "a 7"]


def test_what_goes_on_beside_a_run_begins_after_the_start_and_ends_before_the_stop(tmp_path: Path) -> None:
    calls: list[str] = []

    @contextmanager
    def beside() -> Iterator[None]:
        calls.append("loops")
        yield
        calls.append("no loops")

    Turns(tmp_path, []).take("a case", LAB, {"a": Entry(Fake("a", calls), 1)}, 9, beside)
    assert calls == ["loops", "a 9", "no loops", "a stops"]


def test_a_run_that_failed_is_repeated_once_and_noted(tmp_path: Path) -> None:
    calls: list[str] = []
    notes = take(tmp_path, Fake("a", calls, failures=1))
    assert calls == ["a 100", "a stops"] * 3
    assert notes == ["a case: a failed and was repeated: the site did not come"]


def test_a_run_that_failed_twice_ends_its_case(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="did not come"):
        take(tmp_path, Fake("a", [], failures=2))


def test_sites_that_lack_bytes_are_noted(tmp_path: Path) -> None:
    assert take(tmp_path, Fake("a", [], sites=5)) == ["a case: a left 2 sites incomplete."] * 2


def test_a_case_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 1, FULL)

    def broken(_: Bench) -> list[Row]:
        """Row 3."""
        raise RuntimeError("no such link")

    assert kept(bench, broken) == []
    assert bench.notes == ["NOT MEASURED, Row 3. no such link"]


def test_every_row_has_a_case_and_a_title() -> None:
    assert list(command.CASES) == list(TITLES) == [str(number) for number in range(1, 15)]
    assert command.cases(["1", "2", "4"]) == [Bench.fast, Bench.losses]
    with pytest.raises(argparse.ArgumentTypeError, match="no row 15"):
        command._rows("1,15")


def test_amounts_shrink_but_never_to_nothing() -> None:
    tiny = FULL.times(0.001)
    assert tiny.asked_bytes == tiny.narrow_bytes == 1_000_000
    assert tiny.message_seconds == 1.0
    assert FULL.times(1) == FULL


def test_a_missing_peer_is_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    notes: list[str] = []
    assert not packaged.has_package("uftp", "uftp", notes)
    assert "apt-get install uftp" in notes[0]


def test_a_source_is_as_long_as_asked_and_never_the_same(tmp_path: Path) -> None:
    one, other = (source_file(tmp_path / name, 100_001) for name in ("one", "other"))
    assert one.stat().st_size == 100_001
    assert digest(one) != digest(other)


def test_the_counter_of_a_program_that_is_not_there_yet_is_not_read() -> None:
    assert sent_by_program(1, "surely-not-this") == 0
    assert sent_by_program(2**22 + 1, "gone") == 0
