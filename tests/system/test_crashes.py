"""`kill -9` of the hub's node, its api and the sites: nothing acknowledged is lost, doubled or renumbered."""

import os
import secrets
from pathlib import Path

import pytest

from kit.crashes import CrashStory
from kit.postgres import Postgres, postgres
from kit.stored_files import unlisted

pytestmark = [pytest.mark.system]


def test_twenty_kills(tmp_path: Path) -> None:
    tell(tmp_path, kills=20)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_two_hundred_kills(tmp_path: Path, part: int) -> None:
    tell(tmp_path, kills=int(os.environ.get("DOWNBURST_KILLS", "210")) // 10)


@pytest.mark.nightly
def test_forty_kills_with_the_ledger_in_a_postgresql_that_is_killed_too(tmp_path: Path) -> None:
    with postgres() as server:
        tell(tmp_path, kills=40, server=server)


def tell(tmp_path: Path, kills: int, server: Postgres | None = None) -> None:
    seed = int(os.environ.get("DOWNBURST_SEED") or secrets.randbelow(1_000_000))
    test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
    # The seed determines the kills and every product; the exact moment of a kill depends on the machine.
    print(f"replay: DOWNBURST_SEED={seed} .venv/bin/python -m pytest '{test}'")
    story = CrashStory(tmp_path, seed, server)
    wrong = story.tell(kills)
    print(f"killed {dict(story.killed)}; {len(story.acknowledged())} acknowledgements")
    assert not wrong, "\n".join(wrong)
    assert sum(story.killed.values()) == kills
    assert list(unlisted("hub", story.hub.directory / "data")) == [], "the catalogue of stored files lacks them"
    for site in story.sites.values():
        assert set(unlisted("site", site.directory)) <= OF_THE_TEST, "the catalogue of stored files lacks them"


OF_THE_TEST = {"site.log", "token"}
"""Files that the test itself puts into a site's directory."""
