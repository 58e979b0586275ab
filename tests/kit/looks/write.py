"""Records the looks of all pages: run it after a wanted change, and look at the pictures before the commit.

cd tests && DOWNBURST_LOOKS=/tmp/looks python -m kit.looks.write [SCENE...]
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from kit.looks.album import GOLDEN, Album, looks_of
from kit.looks.scenes import SCENES
from kit.looks.served import served


def main(scenes: list[str]) -> None:
    """Writes a file for each scene."""
    GOLDEN.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for scene in scenes or list(SCENES):
            with (
                TemporaryDirectory(prefix="downburst-looks-") as scratch,
                served(Path(scratch), SCENES[scene]) as url,
            ):
                album = Album(browser, url)
                looks = {look.name: list(album.grid(look).rows) for look in looks_of(scene)}
            (GOLDEN / f"{scene}.json").write_text(json.dumps(looks, indent=1) + "\n")
            print(f"{scene}: {len(looks)} looks", *album.findings, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
