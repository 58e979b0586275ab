"""The site as a hub serves it: its pages keep the policy of contents, and its topics are complete."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from downburst.foundation.clock import FakeClock
from downburst.ledger import Ledger
from downburst_api.app import create_app
from factories import runtime
from unit.documentation.commands_pages import ROOT

DOCS = ROOT / "docs"
INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>|<[^>]* on[a-z]+=|javascript:")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pages, built as the whole site is; a whole one takes a quarter of a minute."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("index.md", "air-gap.md", "adr/README.md"):
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DOCS / name, folder / "docs" / name)
    argv = [sys.executable, "-m", "sphinx", "-q", "-c", str(DOCS / "site"), "-b", "html"]
    subprocess.run([*argv, str(folder / "docs"), str(folder / "html")], check=True, capture_output=True)
    return folder / "html"


def caller(folder: Path, ledger: Ledger, clock: FakeClock, *, guide: Path | None) -> httpx.AsyncClient:
    made, _ = runtime(folder / "hub", ledger, clock)
    return httpx.AsyncClient(transport=httpx.ASGITransport(create_app(made, guide=guide)), base_url="http://hub")


def pages_of(site: Path) -> list[str]:
    return [str(page.relative_to(site)) for page in site.rglob("*.html")]


async def test_a_hub_serves_pages_whose_scripts_its_policy_permits(
    site: Path, tmp_path: Path, ledger: Ledger, clock: FakeClock
) -> None:
    pages = pages_of(site)
    assert {"index.html", "search.html", "air-gap.html", "adr/README.html"} <= set(pages)
    loaded = set()
    async with caller(tmp_path, ledger, clock, guide=site) as browser:
        for page in pages:
            answer = await browser.get(f"/guide/{page}")
            assert answer.status_code == 200
            policy = dict(
                part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";")
            )
            assert policy.get("script-src", policy["default-src"]) == "'self'"
            assert INLINE.findall(answer.text) == [], page
            named = re.findall(r"<(?:script|link|img)[^>]* (?:src|href)=\"([^\"]+)\"", answer.text)
            loaded |= {urljoin(f"http://hub/guide/{page}", one) for one in named}
        assert any("inline-" in address for address in loaded), "the script that sets the theme has a file of its own"
        for address in loaded:
            assert address.startswith("http://hub/guide/")
            assert (await browser.get(address)).status_code == 200, address


async def test_a_hub_without_the_site_names_the_command_that_builds_it(
    tmp_path: Path, ledger: Ledger, clock: FakeClock
) -> None:
    async with caller(tmp_path, ledger, clock, guide=None) as browser:
        answer = await browser.get("/guide/operator-guide.html")
    assert answer.status_code == 404
    assert "make docs" in answer.text


def test_a_search_finds_words_of_the_pages(site: Path) -> None:
    assert "air-gap" in (site / "searchindex.js").read_text()


def test_links_to_files_outside_of_the_site_name_them(site: Path) -> None:
    assert "../charts" not in (site / "air-gap.html").read_text()
