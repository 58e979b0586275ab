"""The pictures of the documents and the digest of the page that each of them shows.

`python scripts/pictures.py` ends with 1 and names each picture that is older than its page. The script of a picture
takes it anew and stamps it in docs/pictures.json.
"""

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAMPS = ROOT / "docs" / "pictures.json"


@dataclass(frozen=True)
class Picture:
    """A picture, and the files that change its look."""

    name: str
    script: str
    shown: tuple[str, ...]
    """Files and directories besides the script."""

    @property
    def path(self) -> Path:
        """Its file."""
        return ROOT / self.name

    @property
    def remedy(self) -> str:
        """The command that takes it anew."""
        return f"take it anew: PYTHONPATH=tests .venv/bin/python {self.script}"


DASHBOARD = "services/dashboard/"
SENTENCES = ("scheduler/downburst_scheduler/sentences.py", "scheduler/downburst_scheduler/figures/wording.py")
"""The sentences of plans, which fill most of the first page."""

PAGE = Picture(
    "docs/page.png",
    "scripts/screenshot.py",
    (f"{DASHBOARD}index.html", f"{DASHBOARD}public", f"{DASHBOARD}src", *SENTENCES),
)
BRIDGES = Picture(
    "docs/bridges.png",
    "scripts/screenshot_bridges.py",
    (
        f"{DASHBOARD}src/page.css",
        f"{DASHBOARD}src/bridges",
        f"{DASHBOARD}src/pages/BridgesPage.svelte",
        "tests/kit/wis2/bridged_hub.py",
    ),
)
PICTURES = (PAGE, BRIDGES)


def main() -> int:
    """Prints a line for each picture that does not show the page of today."""
    stale = [sentence for picture in PICTURES for sentence in outdated(picture)]
    print("\n".join(stale) if stale else "the pictures show the page of today")
    return 1 if stale else 0


def outdated(picture: Picture) -> list[str]:
    """A sentence for each reason why a picture has to be taken anew."""
    if not picture.path.exists():
        return [f"{picture.name} is missing; {picture.remedy}"]
    stamped = _stamps().get(picture.name, {})
    found = []
    if stamped.get("picture") != digest_of([picture.path], picture.path.parent):
        found.append(f"{picture.name} is not the picture that docs/pictures.json has a stamp of; {picture.remedy}")
    if stamped.get("page") != digest_of(sources(picture), ROOT):
        found.append(f"{picture.name} is older than the page that it shows; {picture.remedy}")
    return found


def stamp(picture: Picture) -> None:
    """Records that the picture shows the page of today."""
    made = {
        "page": digest_of(sources(picture), ROOT),
        "picture": digest_of([picture.path], picture.path.parent),
    }
    STAMPS.write_text(json.dumps(_stamps() | {picture.name: made}, indent=2, sort_keys=True) + "\n")


def sources(picture: Picture) -> list[Path]:
    """Every file that changes the look of the picture; tests of the page and their fixtures change nothing."""
    found = [path for name in (*picture.shown, picture.script) for path in _files(ROOT / name)]
    return sorted(path for path in found if not path.name.endswith(".test.ts") and "fixtures" not in path.parts)


def digest_of(files: list[Path], root: Path) -> str:
    """The SHA-256 of the files' names and contents."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(root)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _stamps() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(STAMPS.read_text()) if STAMPS.exists() else {}
    return found


def _files(path: Path) -> list[Path]:
    return [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]


if __name__ == "__main__":
    sys.exit(main())
