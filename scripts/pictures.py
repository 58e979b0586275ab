"""The pictures of the documents and the digest of the page that each of them shows.

`python scripts/pictures.py` ends with 1 and names each picture that is older than its page. scripts/screenshot.py
takes the picture anew and stamps it in docs/pictures.json.
"""

import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAMPS = ROOT / "docs" / "pictures.json"
PAGE = ROOT / "docs" / "page.png"

SHOWN = ("services/dashboard/index.html", "services/dashboard/public", "services/dashboard/src")
"""The sources of the page."""

REASONS = ("scheduler/downburst_scheduler/sentences.py", "scheduler/downburst_scheduler/figures/wording.py")
"""The sentences of plans, which fill most of the picture."""

RECIPE = ("scripts/screenshot.py",)
AFTER = "take it anew: .venv/bin/python scripts/screenshot.py"


def main() -> int:
    """Prints a line for each picture that does not show the page of today."""
    stale = outdated()
    print("\n".join(stale) if stale else "the pictures show the page of today")
    return 1 if stale else 0


def outdated(stamps: Path = STAMPS, picture: Path = PAGE, root: Path = ROOT) -> list[str]:
    """A sentence for each reason why a picture has to be taken anew."""
    name = f"docs/{picture.name}"
    if not picture.exists():
        return [f"{name} is missing; {AFTER}"]
    stamped = json.loads(stamps.read_text()).get(name, {}) if stamps.exists() else {}
    found = []
    if stamped.get("picture") != digest_of([picture], picture.parent):
        found.append(f"{name} is not the picture that docs/pictures.json has a stamp of; {AFTER}")
    if stamped.get("page") != digest_of(sources(root), root):
        found.append(f"{name} is older than the page that it shows; {AFTER}")
    return found


def stamp(stamps: Path = STAMPS, picture: Path = PAGE, root: Path = ROOT) -> None:
    """Records that the picture shows the page of today."""
    made = {"page": digest_of(sources(root), root), "picture": digest_of([picture], picture.parent)}
    stamps.write_text(json.dumps({f"docs/{picture.name}": made}, indent=2) + "\n")


def sources(root: Path = ROOT) -> list[Path]:
    """Every file that changes the look of the picture; tests of the page and their fixtures change nothing."""
    found = [path for name in (*SHOWN, *REASONS, *RECIPE) for path in _files(root / name)]
    return sorted(path for path in found if not path.name.endswith(".test.ts") and "fixtures" not in path.parts)


def digest_of(files: list[Path], root: Path) -> str:
    """The SHA-256 of the files' names and contents."""
    digest = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(root)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _files(path: Path) -> list[Path]:
    return [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]


if __name__ == "__main__":
    sys.exit(main())
