"""The first entries on the page and in `downburst status`, and the time until they appeared."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from playwright.sync_api import Page

from kit.whole_hub import WholeHub

Reached = Callable[[Sequence["Entry"]], bool]


class Watched(Protocol):
    """A hub with its operator."""

    @property
    def hub(self) -> WholeHub: ...

    def command(self, *argv: str) -> str: ...


@dataclass(frozen=True)
class Entry:
    """One fault, as people read it."""

    sentence: str
    next_step: str

    def tells(self, words: tuple[str, ...]) -> bool:
        """True if it contains all of these words, capital or small at the begin of a sentence, and a next step."""
        return bool(self.next_step) and all(word.lower() in self.sentence.lower() for word in words)


class Watcher:
    """Polls both, as an operator does who has no other window."""

    def __init__(self, scene: Watched, page: Page) -> None:
        self._scene, self._page = scene, page
        page.goto(f"http://{scene.hub.http}/")
        page.get_by_test_id("faults").wait_for()

    def wait_for_first(self, fault: str, *words: str, limit_s: float) -> None:
        """Waits until the first entry of both holds the words; fails after `limit_s` seconds without."""
        self._wait_for(
            fault,
            f"first with {words}",
            lambda entries: bool(entries) and entries[0].tells(words),
            limit_s,
        )

    def wait_for_end(self, fault: str, *words: str, limit_s: float = 120.0) -> None:
        """Waits until neither shows an entry with the words."""
        self._wait_for(fault, "gone", lambda entries: not any(entry.tells(words) for entry in entries), limit_s)

    def on_page(self) -> list[Entry]:
        """The entries that are not silenced, from the top."""
        shown = self._page.locator("[data-testid=faults] li").evaluate_all(_SHOWN)
        return [Entry(sentence.strip(), step.strip()) for sentence, step in shown]

    def in_status(self) -> list[Entry] | None:
        """The same from the command; None if the hub did not answer it."""
        printed = self._scene.command("status")
        if "health: " not in printed:
            return None
        found = _ENTRY.findall(printed)
        return [Entry(sentence, step) for sentence, step in found]

    def _wait_for(self, fault: str, what: str, reached: Reached, limit_s: float) -> None:
        began_s = time.monotonic()
        command = _Command(self, reached, began_s + limit_s)
        command.start()
        page_s, seen, before = None, list[Entry](), dict[str, float]()
        while page_s is None and time.monotonic() < began_s + limit_s:
            seen = self.on_page()
            page_s = time.monotonic() - began_s if reached(seen) else None
            if page_s is None and seen:
                # Without ages, which change the text at each poll.
                before.setdefault(seen[0].sentence[:BEFORE_SHOWN], round(time.monotonic() - began_s, 1))
            self._page.wait_for_timeout(POLL_MS)
        command.join()
        status_s = None if command.reached_s is None else command.reached_s - began_s
        assert page_s is not None, f"{fault}: not {what} on the page in {limit_s:.0f} s, which shows {seen}"
        assert status_s is not None, f"{fault}: not {what} in status in {limit_s:.0f} s, which shows {command.seen}"
        if before:
            print(f"{fault}: first on the page until then, with the second: {before}")
        print(
            f"{fault}: {what}, on the page after {page_s:.1f} s, in status after {status_s:.1f} s of {limit_s:.0f} s"
        )


class _Command(threading.Thread):
    """In parallel with the page: a command takes more than a second."""

    def __init__(self, watcher: Watcher, reached: Reached, give_up_s: float) -> None:
        super().__init__(daemon=True)
        self._watcher, self._is_reached, self._give_up_s = watcher, reached, give_up_s
        self.reached_s: float | None = None
        self.seen: list[Entry] = []

    def run(self) -> None:
        while self.reached_s is None and time.monotonic() < self._give_up_s:
            seen = self._watcher.in_status()
            if seen is not None and self._is_reached(seen):
                self.reached_s = time.monotonic()
            self.seen = seen or []


POLL_MS = 100
BEFORE_SHOWN = 60
_SHOWN = """
rows => rows
  .filter(row => !row.querySelector('[data-testid=silenced]'))
  .map(row => [row.querySelector('[data-testid=cause]'), row.querySelector('[data-testid=next]')])
  .map(parts => parts.map(part => part?.textContent ?? ''))
"""
"""Of each incident that is not silenced, folded ones included: title with cause, and next step."""
_ENTRY = re.compile(r"^! (?:critical|warning|information), \S+: (.*)(?:\n  (.*))?$", re.MULTILINE)
