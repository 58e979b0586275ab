"""A user's hands in a browser, which count."""

from playwright.sync_api import Locator, Page


class Hands:
    """Counts interactions: a click, a filled field and a key chord are one each."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def click(self, target: Locator) -> None:
        """Clicks once."""
        self.count += 1
        target.click()

    def fill(self, target: Locator, text: str) -> None:
        """Fills in one field."""
        self.count += 1
        target.fill(text)

    def press(self, chord: str) -> None:
        """Presses keys together."""
        self.count += 1
        self.page.keyboard.press(chord)

    def go(self, title: str) -> None:
        """Opens a page by the rail."""
        self.click(self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=title, exact=True))
