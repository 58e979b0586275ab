"""Every stored file damaged: each start is bounded, nothing is lost or wrong silently, and products continue."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kit.damage import scene
from kit.damage.injuries import INJURIES
from kit.damage.plan import Subject, plant, rounds, subjects
from kit.damage.scene import Pair
from kit.damage.trials import Verdict, tried
from kit.stored_files import stored_files, unlisted

pytestmark = [pytest.mark.system]

ELSEWHERE = {
    "hub:node/log/.probe/*",
    "hub:node/log/*/*.bodies/*",
    "hub:node/log/*/copy",
    "hub:node/ldm/cursors.json",
    "site:log/*/*.bodies/*",
    "site:log/.file-probe",
    "site:state/sibling-uploads",
    "site:state/control.sock",
}
"""First paths of entries that are not damaged in this scene; the catalogue says why."""


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pair]:
    home = tmp_path_factory.mktemp("damage")
    stopped = scene.stopped(home / "stopped")
    killed = scene.killed(stopped, home / "killed")
    plant(stopped)
    return {"stopped": stopped, "killed": killed}


@pytest.fixture(scope="module")
def chosen(snapshots: dict[str, Pair]) -> list[Subject]:
    return subjects(snapshots)


def test_every_entry_has_a_file_that_is_damaged_or_says_why_not(
    snapshots: dict[str, Pair], chosen: list[Subject]
) -> None:
    for pair in snapshots.values():
        assert list(unlisted("hub", pair.directory("hub"))) == [], "the catalogue of stored files lacks them"
        assert set(unlisted("site", pair.directory("site"))) <= {"site.log", "token"}, "the catalogue lacks them"
    without = [entry for entry in stored_files() if entry not in [one.entry for one in chosen]]
    assert {entry.paths[0] for entry in without if "elsewhere" in entry.outcomes} == ELSEWHERE
    assert [entry.paths[0] for entry in without if "elsewhere" not in entry.outcomes] == []


def test_files_that_were_cut_are_said_or_made_anew(
    snapshots: dict[str, Pair], chosen: list[Subject], tmp_path: Path
) -> None:
    """The largest trial of all; `make test-all` runs every one."""
    largest = max(rounds(chosen, ["cut"]), key=len)
    assert len(largest) > LEAST_AT_ONCE
    check([(largest, trial(snapshots, tmp_path / "one", largest))])


@pytest.mark.long(30)
@pytest.mark.parametrize(
    "injury",
    [
        pytest.param(injury, marks=[] if injury in ("cut", "flipped") else [pytest.mark.nightly])
        for injury in sorted(INJURIES)
    ],
)
def test_no_damage_is_silent(snapshots: dict[str, Pair], chosen: list[Subject], tmp_path: Path, injury: str) -> None:
    wanted = list(rounds(chosen, [injury]))
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as both:
        verdicts = both.map(lambda one: trial(snapshots, tmp_path / str(one[0]), one[1]), enumerate(wanted))
        check(list(zip(wanted, verdicts, strict=True)))


Round = list[tuple[Subject, str]]


def trial(snapshots: dict[str, Pair], home: Path, harmed: Round) -> Verdict:
    expected = {one.hurt(injury): one.expected(injury) for one, injury in harmed}
    return tried(snapshots[harmed[0][0].snapshot], home, list(expected), expected)


def check(judged: list[tuple[Round, Verdict]]) -> None:
    wrong = list(_wrong(judged))
    assert not wrong, "\n".join(wrong)


def _wrong(judged: list[tuple[Round, Verdict]]) -> Iterator[str]:
    """Deviations from the catalogue; the whole table is printed."""
    for harmed, verdict in judged:
        print(f"start: {verdict.start_s:.1f} s")
        yield from (f"{len(harmed)} damaged files: {sentence}" for sentence in verdict.wrong)
        for one, injury in harmed:
            harm = one.hurt(injury)
            print(f"{injury:10} {one.place}:{one.path:70} {verdict.outcomes[harm]:9} {verdict.words[harm][:200]}")
            if verdict.outcomes[harm] not in one.expected(injury).split(" or "):
                yield f"{harm}: {verdict.outcomes[harm]}, and the catalogue says {one.expected(injury)}"


LEAST_AT_ONCE = 25
