"""A picture older than the page that it shows is detected, and the documents' pictures are current."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_the_pictures_of_the_documents_show_the_page_of_today() -> None:
    done = checked(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of the sources, with pictures that were just taken."""
    for name in _sources():
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes((ROOT / name).read_bytes())
    (tmp_path / "scripts" / "pictures.py").write_bytes((ROOT / "scripts" / "pictures.py").read_bytes())
    (tmp_path / "docs").mkdir()
    for name in ("page", "bridges"):
        (tmp_path / "docs" / f"{name}.png").write_bytes(b"a picture")
    stamp = "import pictures; [pictures.stamp(one) for one in pictures.PICTURES]"
    subprocess.run([sys.executable, "-c", stamp], cwd=tmp_path / "scripts", check=True)
    return tmp_path


def test_pictures_that_were_just_taken_are_current(elsewhere: Path) -> None:
    assert checked(elsewhere).returncode == 0


@pytest.mark.parametrize(
    "changed",
    [
        "services/dashboard/src/page.css",
        "services/dashboard/src/components/Trace.svelte",
        "scheduler/downburst_scheduler/sentences.py",
        "scripts/screenshot.py",
    ],
)
def test_a_change_of_the_page_makes_the_picture_old(elsewhere: Path, changed: str) -> None:
    with (elsewhere / changed).open("a") as file:
        file.write("\n")
    done = checked(elsewhere)
    assert done.returncode == 1
    assert "docs/page.png is older than the page that it shows" in done.stdout


def test_a_picture_of_one_page_stays_current_while_others_change(elsewhere: Path) -> None:
    for changed, stays in (("components/Trace.svelte", "bridges.png"), ("bridges/bridges.ts", "")):
        with (elsewhere / "services/dashboard/src" / changed).open("a") as file:
            file.write("\n")
        old = checked(elsewhere).stdout
        assert "docs/page.png is older" in old
        assert ("docs/bridges.png is older" in old) == (not stays)


def test_a_file_that_was_added_makes_the_picture_old(elsewhere: Path) -> None:
    (elsewhere / "services/dashboard/src/components/New.svelte").write_text("<p>new</p>")
    assert "older than the page" in checked(elsewhere).stdout


def test_a_test_of_the_page_changes_no_picture(elsewhere: Path) -> None:
    (elsewhere / "services/dashboard/src/new.test.ts").write_text("// a test")
    assert checked(elsewhere).returncode == 0


def test_another_picture_in_its_place_is_found(elsewhere: Path) -> None:
    (elsewhere / "docs" / "page.png").write_bytes(b"another picture")
    assert "is not the picture" in checked(elsewhere).stdout


def test_a_picture_that_is_missing_is_named(elsewhere: Path) -> None:
    (elsewhere / "docs" / "page.png").unlink()
    assert "docs/page.png is missing" in checked(elsewhere).stdout


def checked(root: Path) -> "subprocess.CompletedProcess[str]":
    """The report of the script on the pictures of this tree."""
    command = [sys.executable, str(root / "scripts" / "pictures.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _sources() -> list[str]:
    each = "(one.relative_to(pictures.ROOT) for it in pictures.PICTURES for one in pictures.sources(it))"
    command = [sys.executable, "-c", f"import pictures; print(*{each}, sep='\\n')"]
    listed = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True, check=True)
    return listed.stdout.split()
