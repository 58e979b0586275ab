"""The course of the measurement: turns, second tries, peers that are missing. No lab is built."""

import shutil
from pathlib import Path

import pytest
from bench import multicast
from bench.counters import LinkBytes
from bench.delivery import HUB, Delivery
from bench.multicast import Bench, Start
from bench.multicast_rows import SITES

from kit.namespaces import Lab

LAB = Lab(multicast.HOSTS)


class Fake:
    """Delivers in no time, or fails as often as told."""

    def __init__(self, name: str, calls: list[str], *, failures: int = 0, sites: int = len(SITES)) -> None:
        self.name, self.calls, self.failures, self.sites = name, calls, failures, sites

    def __call__(self, lab: Lab, directory: Path) -> "Fake":
        assert lab is LAB
        assert directory.is_dir()
        return self

    def deliver(self, content: bytes) -> Delivery:
        self.calls.append(f"{self.name} {len(content)}")
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the site did not come")
        took_s = dict.fromkeys(SITES[: self.sites], 1.0)
        return Delivery(len(content), took_s, 1.0, {HUB: LinkBytes(0, len(content))})

    def stop(self) -> None:
        self.calls.append(f"{self.name} stops")


def take_turns(tmp_path: Path, contenders: dict[str, Start], *, times: int = 1) -> Bench:
    bench = Bench(tmp_path, 100, 2, with_uftp=False)
    runs = bench._take_turns("a case", LAB, contenders, times=times)
    assert [len(deliveries) for deliveries in runs.values()] == [2] * len(contenders)
    return bench


def test_contenders_take_turns_and_are_stopped_after_each_run(tmp_path: Path) -> None:
    calls: list[str] = []
    take_turns(tmp_path, {"a": Fake("a", calls), "b": Fake("b", calls)}, times=3)
    assert calls == ["a 300", "a stops", "b 300", "b stops"] * 2
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_failed_is_repeated_once_and_noted(tmp_path: Path) -> None:
    calls: list[str] = []
    bench = take_turns(tmp_path, {"a": Fake("a", calls, failures=1)})
    assert calls == ["a 100", "a stops"] * 3
    assert bench.notes == ["a case: a failed and was repeated: the site did not come"]


def test_a_run_that_failed_twice_ends_the_measurement(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="did not come"):
        take_turns(tmp_path, {"a": Fake("a", [], failures=2)})


def test_sites_that_lack_bytes_are_noted(tmp_path: Path) -> None:
    bench = take_turns(tmp_path, {"a": Fake("a", [], sites=5)})
    assert bench.notes == ["a case: a left 2 sites incomplete."] * 2


def test_a_missing_peer_is_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    notes: list[str] = []
    assert not multicast._has_uftp(notes)
    assert "apt-get install uftp" in notes[0]
    assert set(Bench(tmp_path, 1, 1, with_uftp=False)._contenders(1, uftp_bps=1)) == {"downburst"}
    assert set(Bench(tmp_path, 1, 1, with_uftp=True)._contenders(1, uftp_bps=None)) == {"downburst", "uftp"}
    assert set(Bench(tmp_path, 1, 1, with_uftp=True)._contenders(1)) == {"downburst"}
