"""Takes the six pictures of docs/page-questions.md, with the key of its questions: the hub's own answers.

The hub is the one of tests/kit/looks/reading.py: the real api and page over a fixed state at a fixed time. Run it
after `make setup-test`, and commit docs/questions:

    PYTHONPATH=tests .venv/bin/python scripts/screenshot_questions.py
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pictures import ROOT
from playwright.sync_api import sync_playwright

from kit.looks.album import Album, Look
from kit.looks.key import key_of
from kit.looks.reading import PICTURES, asked
from kit.looks.served import served

OUT = ROOT / "docs" / "questions"


def main() -> int:
    """Takes the pictures and the key of one hub."""
    OUT.mkdir(exist_ok=True)
    with TemporaryDirectory() as scratch, served(Path(scratch), asked) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        album = Album(browser, url)
        for letter, address in PICTURES.items():
            (OUT / f"{letter}.png").write_bytes(album.whole(Look(letter, address, "light", 1440)))
        (OUT / "key.json").write_text(json.dumps(key_of(url), indent=1) + "\n")
    print(*album.findings, f"{OUT}: {len(PICTURES)} pictures", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
