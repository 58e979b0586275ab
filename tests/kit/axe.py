"""Accessibility of the open page, as axe-core judges it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from kit.page_hub import PATIENCE_MS

AXE = Path(__file__).resolve().parents[2] / "services" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")


def no_serious_finding(page: Page) -> None:
    """Fails if there is a serious finding; names the finding and its place."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    # A dialog that still fades in has too little contrast for some milliseconds, which hinders no reader.
    page.evaluate("Promise.allSettled(document.getAnimations().map(one => one.finished))")
    found = page.evaluate("axe.run().then(result => result.violations)")
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], [(one["id"], one["help"], [node["html"] for node in one["nodes"]]) for one in serious]


def every_page_fits(page: Page, browser: Browser, url: str, addresses: Iterable[str]) -> None:
    """Each address, signed in as `page` is, on a desk and on a phone: nothing is wider than the screen, and neither
    dark nor light has a serious finding.
    """
    for width in (1280, 390):
        context = browser.new_context(
            storage_state=page.context.storage_state(), viewport={"width": width, "height": 844}
        )
        look = context.new_page()
        look.set_default_timeout(PATIENCE_MS)
        for number, address in enumerate(addresses):
            # A different address before the `#` makes the browser reload the page.
            look.goto(f"{url}?{number}{address}")
            look.locator("main :is(section, form)").first.wait_for()
            wide = look.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (address, width, wide, look.evaluate(_BEYOND, width))
            for scheme in SCHEMES:
                look.emulate_media(color_scheme=scheme)
                no_serious_finding(look)
        context.close()


_BEYOND = """width => [...document.querySelectorAll("main *")]
    .filter(one => one.getBoundingClientRect().right > width)
    .map(one => `${one.tagName} ${one.className}: ${one.textContent.slice(0, 60)}`).slice(0, 9)"""
"""The elements that reach beyond the screen."""
