"""Pictures of a hub's pages, compared with the recorded ones."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, BrowserContext, Page

from kit.axe import SCHEMES, no_serious_finding
from kit.looks.fleet import NOW
from kit.looks.grids import Grid
from kit.looks.late_product import PRODUCT
from kit.looks.served import HEADERS
from kit.page_hub import PATIENCE_MS

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "looks"
SIZES = {1440: 900, 390: 844}
"""Widths with the heights of their screens, in pixels."""

PAGES = {
    "now": "#/",
    "alarms": "#/alarms",
    "feeds": "#/feeds",
    "sites": "#/sites",
    "latency": "#/latency",
    "volume": "#/volume",
    "products": "#/products",
    "map": "#/map",
    "network": "#/tree",
    "circuits": "#/circuits",
    "relays": "#/relays",
    "bridges": "#/bridges",
    "users": "#/users",
}
ONE_FEED = {"feed": "#/feeds/CONDUIT", "site": "#/sites/otago.ac.nz"}
"""Pages of one feed and one site, in scenes that have them."""
LATE_PRODUCT = {"trace": f"#/trace/{PRODUCT}"}
"""The page of a product, in the scene that has it."""

THIN = {("light", 1440), ("dark", 390)}
Known = dict[str, Grid]


@dataclass(frozen=True, slots=True)
class Look:
    """A page in a scheme of colours and at a width."""

    page: str
    address: str
    scheme: Literal["dark", "light"]
    width_px: int

    @property
    def name(self) -> str:
        """Its name among the recorded ones."""
        return f"{self.page} {self.width_px} {self.scheme}"


def looks_of(scene: str, *, thin: bool = False) -> Iterator[Look]:
    """All looks of a scene; thin: each page light at a desk, and dark on a phone."""
    pages = PAGES | (ONE_FEED if scene in ("healthy", "incident") else {})
    pages |= LATE_PRODUCT if scene == "incident" else {}
    for (name, address), scheme, width in product(pages.items(), SCHEMES, SIZES):
        if not thin or (scheme, width) in THIN:
            yield Look(name, address, scheme, width)


def recorded(scene: str) -> Known:
    """The recorded looks of a scene, by name."""
    known = json.loads((GOLDEN / f"{scene}.json").read_text())
    return {name: Grid(tuple(rows)) for name, rows in known.items()}


@dataclass
class Album:
    """Takes pictures of a hub's pages."""

    browser: Browser
    url: str
    findings: list[str] = field(default_factory=list)
    """A sentence for each page that looks different or hinders a reader."""
    _contexts: dict[tuple[str, int], Page] = field(default_factory=dict)
    _blank: Page | None = None
    _taken: int = 0

    def compare(self, look: Look, known: Known, *, damage: str = "", judge_access: bool = False) -> None:
        """Takes a picture and adds its findings. `damage`: a script of a test of this comparison."""
        grid = self.grid(look, damage=damage)
        if look.name not in known:
            self.findings.append(f"{look.name}: no look is recorded; run python -m kit.looks.write in tests/")
        elif not grid.looks_like(known[look.name]):
            share = grid.share_of_differences(known[look.name])
            self.findings.append(f"{look.name}: {share:.0%} of the picture differ; see DOWNBURST_LOOKS")
        if judge_access:
            self._judge(look)

    def grid(self, look: Look, *, damage: str = "") -> Grid:
        """The look of a page once it stands still."""
        page = self._page(look)
        self._taken += 1
        # A different address before the `#` makes the browser load the page anew.
        page.goto(f"{self.url}?{self._taken}{look.address}")
        page.locator("main :is(section, form, h1)").first.wait_for()
        page.locator(".live[data-state=live]").wait_for()
        page.evaluate("document.fonts.ready")
        if damage:
            page.evaluate(damage)
        return self._still(page, look)

    def whole(self, look: Look) -> bytes:
        """The whole page as a picture, once it stands still."""
        self.grid(look)
        return self._page(look).screenshot(animations="disabled", full_page=True)

    def _still(self, page: Page, look: Look) -> Grid:
        """Pictures follow each other until two are the same: pages ask the hub more than once."""
        last, png = None, b""
        for _ in range(_MOST_PICTURES):
            png = page.screenshot(animations="disabled")
            grid = Grid.of_picture(self._reducer(), png)
            if grid == last:
                break
            last = grid
            page.wait_for_timeout(_BETWEEN_MS)
        else:
            self.findings.append(f"{look.name}: the page did not stand still in {_MOST_PICTURES} pictures")
        if directory := os.environ.get("DOWNBURST_LOOKS"):
            (Path(directory) / f"{look.name.replace(' ', '-')}.png").write_bytes(png)
        assert last is not None
        return last

    def _judge(self, look: Look) -> None:
        page = self._page(look)
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > look.width_px:
            self.findings.append(f"{look.name}: the page is {wide} px wide")
        try:
            no_serious_finding(page)
        except AssertionError as finding:
            self.findings.append(f"{look.name}: {finding}")

    def _page(self, look: Look) -> Page:
        wanted = (look.scheme, look.width_px)
        if wanted not in self._contexts:
            page = self._context(look).new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.clock.set_fixed_time(NOW)
            self._contexts[wanted] = page
        return self._contexts[wanted]

    def _context(self, look: Look) -> BrowserContext:
        return self.browser.new_context(
            viewport={"width": look.width_px, "height": SIZES[look.width_px]},
            color_scheme=look.scheme,
            reduced_motion="reduce",
            extra_http_headers=HEADERS,
            timezone_id="UTC",
            locale="en-GB",
        )

    def _reducer(self) -> Page:
        if self._blank is None:
            self._blank = self.browser.new_context().new_page()
        return self._blank


_BETWEEN_MS = 250
_MOST_PICTURES = 40
