"""Each page in fixed states looks as it did: dark and light, at a desk and on a phone.

A changed look is reviewed by eye: `DOWNBURST_LOOKS=DIRECTORY` writes the pictures there, and
`python -m kit.looks.write` (in tests/) records the new looks.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from kit.capabilities import needs
from kit.looks.album import GOLDEN, Album, looks_of, recorded
from kit.looks.key import key_of
from kit.looks.reading import asked
from kit.looks.scenes import SCENES
from kit.looks.served import served

pytestmark = [pytest.mark.system, pytest.mark.browser]


@pytest.fixture
def incidents(tmp_path: Path, browser: Browser) -> Iterator[Album]:
    needs("chromium")
    with served(tmp_path, SCENES["incident"]) as url:
        yield Album(browser, url)


def test_pages_of_a_hub_with_incidents_look_as_recorded(incidents: Album) -> None:
    known = recorded("incident")
    for look in looks_of("incident", thin=True):
        incidents.compare(look, known)
    assert incidents.findings == [], "\n".join(incidents.findings)


def test_a_card_that_vanished_and_a_column_that_moved_are_noticed(incidents: Album) -> None:
    known = recorded("incident")
    look = next(look for look in looks_of("incident") if look.name == "now 1440 light")
    for damage in (
        "document.querySelector('[data-testid=strip]').style.visibility = 'hidden'",
        "document.querySelector('main').style.paddingLeft = '90px'",
    ):
        incidents.compare(look, known, damage=damage)
    assert len(incidents.findings) == 2, incidents.findings
    incidents.findings.clear()
    incidents.compare(look, known)
    assert incidents.findings == []


def test_the_key_of_the_questions_is_the_answer_of_the_hub(tmp_path: Path) -> None:
    with served(tmp_path, asked) as url:
        assert key_of(url) == json.loads((GOLDEN.parents[2] / "docs" / "questions" / "key.json").read_text())


@pytest.mark.nightly
@pytest.mark.parametrize("scene", list(SCENES))
def test_every_page_looks_as_recorded_and_hinders_no_reader(scene: str, tmp_path: Path, browser: Browser) -> None:
    needs("chromium")
    with served(tmp_path, SCENES[scene]) as url:
        album = Album(browser, url)
        for look in looks_of(scene):
            album.compare(look, recorded(scene), judge_access=True)
    assert album.findings == [], "\n".join(album.findings)
