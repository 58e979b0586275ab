"""Line lengths: only rows of tables exceed 120 characters, and the README is short."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LONGEST = 120
README_LINES = 150
PATTERNS = ("*.md", "*.py", "*.rs", "*.svelte", "*.ts", "*.css", "*.html", "*.sh", "*.js")
MADE_BY_PROGRAMS = ("services/dashboard/src/api.ts",)


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PATTERNS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith(MADE_BY_PROGRAMS)]
    return [ROOT / name for name in names if (ROOT / name).exists()]


def _long_lines(path: Path) -> Iterator[str]:
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        is_row = path.suffix == ".md" and line.lstrip().startswith("|")
        if len(line) > LONGEST and not is_row:
            yield f"{path.relative_to(ROOT)}:{number}: {len(line)} characters"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone: git can't say which files belong to it")
def test_no_line_is_over_the_limit() -> None:
    files = _tracked()
    assert len(files) > 500, "git lists too few files"
    long = [line for path in files for line in _long_lines(path)]
    assert not long, f"{len(long)} lines over {LONGEST} characters\n" + "\n".join(long)


def test_the_readme_is_read_in_a_minute() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES
