"""The scripts of the documents' pictures take them of hubs with feeds at sites, and with bridges."""

import base64
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page

from kit.capabilities import needs
from kit.node import node_binary
from kit.page_hub import ROOT

pytestmark = [pytest.mark.system, pytest.mark.browser]

# A page without figures has some dozens: letters, lines and the shades between them.
COLOURS = 300
SIZE = (1440, 900)


@pytest.mark.nightly
def test_the_script_takes_a_picture_of_a_hub_with_feeds_at_sites(page: Page, tmp_path: Path) -> None:
    needs("chromium")
    picture, documents = tmp_path / "page.png", (ROOT / "docs/page.png").read_bytes()
    done = taken("screenshot.py", picture)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"(\d+) feeds, (\d+) by multicast, (\d+) sites", done.stdout)
    assert found, done.stdout
    feeds, by_multicast, sites = map(int, found.groups())
    assert feeds >= by_multicast >= 3
    assert sites == 5
    width, height, colours = looked_at(page, picture)
    assert (width, height) == SIZE
    assert colours > COLOURS
    assert (ROOT / "docs/page.png").read_bytes() == documents, "a picture taken elsewhere changes none of docs"


@pytest.mark.nightly
def test_the_script_takes_a_picture_of_bridges(page: Page, tmp_path: Path) -> None:
    needs("chromium")
    picture = tmp_path / "bridges.png"
    done = taken("screenshot_bridges.py", picture)
    assert done.returncode == 0, done.stdout + done.stderr
    width, height, colours = looked_at(page, picture)
    assert (width, height > SIZE[1]) == (SIZE[0], True)
    assert colours > COLOURS


def taken(script: str, picture: Path) -> "subprocess.CompletedProcess[str]":
    """The run of a script of `scripts`, whose picture goes there."""
    paths = os.pathsep.join([str(ROOT / "tests"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), str(picture)],
        env=os.environ | {"DOWNBURST_NODE": node_binary(), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def looked_at(page: Page, picture: Path) -> tuple[int, int, int]:
    """Its width and height, and its number of colours."""
    address = f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    width, height, colours = page.evaluate(_LOOK, address)
    return width, height, colours


_LOOK = """async (address) => {
  const image = new Image()
  image.src = address
  await image.decode()
  const canvas = new OffscreenCanvas(image.width, image.height)
  const drawn = canvas.getContext('2d')
  drawn.drawImage(image, 0, 0)
  const pixels = new Uint32Array(drawn.getImageData(0, 0, image.width, image.height).data.buffer)
  return [image.width, image.height, new Set(pixels).size]
}"""
