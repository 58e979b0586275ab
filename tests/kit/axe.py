"""Accessibility as axe-core judges it, in the page that is open."""

from pathlib import Path

from playwright.sync_api import Page

AXE = Path(__file__).resolve().parents[2] / "services" / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"


def no_serious_finding(page: Page) -> None:
    """Fails with what is wrong and where, if anything serious is."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run().then(result => result.violations)")
    serious = [one for one in found if one["impact"] in ("serious", "critical")]
    assert serious == [], [(one["id"], one["help"], [node["html"] for node in one["nodes"]]) for one in serious]
