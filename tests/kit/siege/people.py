"""Parties that continue undisturbed: a source of products, and a user of the api."""

import threading
import time
from collections import Counter
from contextlib import suppress
from hashlib import sha256
from random import Random
from typing import Any
from urllib.parse import quote

import httpx

from kit.patience import wait_for
from kit.whole_hub import WholeHub


class Source(threading.Thread):
    """Puts products into feeds, and records the acknowledged ones."""

    def __init__(self, hub: WholeHub, feeds: tuple[str, ...], seed: int) -> None:
        super().__init__(daemon=True)
        self.hub, self.feeds, self.random = hub, feeds, Random(seed)
        self.over = threading.Event()
        self.acknowledged: dict[tuple[str, int], tuple[str, str]] = {}
        self.refused: list[str] = []
        self._resting, self._rests = threading.Event(), threading.Event()
        self._pause_s = PRODUCT_EACH_S
        self.put_bytes: Counter[str] = Counter()
        """The acknowledged bytes of each feed."""

    def run(self) -> None:
        """Runs until the end; a refusal is not counted as a product, and is recorded as a sentence."""
        url, authorization = f"http://{self.hub.http}", self.hub.authorization
        with httpx.Client(base_url=url, timeout=60, headers=authorization) as client:
            while not self.over.wait(self._pause_s):
                if self._resting.is_set():
                    self._rests.set()
                    continue
                self._put(client, self.feeds[len(self.acknowledged) % len(self.feeds)])

    def rest(self) -> None:
        """Pauses; the current product is acknowledged first."""
        self._rests.clear()
        self._resting.set()
        assert self._rests.wait(60) or not self.is_alive(), "the source waits for an acknowledgement for ever"

    def go_on(self) -> None:
        """Resumes."""
        self._resting.clear()

    def put_at_least(self, size_bytes: int) -> None:
        """Puts products without a pause until each feed has this number of bytes."""
        self._pause_s = 0.0
        wait_for(f"{size_bytes} bytes in each feed", lambda: self._fewest_bytes() >= size_bytes, 120)
        self._pause_s = PRODUCT_EACH_S

    def wait_for_more(self, products: int) -> None:
        """Waits until this number of further products was acknowledged."""
        goal = len(self.acknowledged) + products
        wait_for(f"{products} more products", lambda: len(self.acknowledged) >= goal, 60)

    def of(self, feeds: tuple[str, ...]) -> dict[tuple[str, int], tuple[str, str]]:
        """The acknowledged products of these feeds: feed and number to id and SHA-256."""
        return {key: product for key, product in self.acknowledged.items() if key[0] in feeds}

    def _fewest_bytes(self) -> int:
        return min(self.put_bytes[feed] for feed in self.feeds)

    def _put(self, client: httpx.Client, feed: str) -> None:
        name = f"product {len(self.acknowledged)}"
        content = self.random.randbytes(int(60_000 * self.random.random() ** 4))
        answer = client.put(f"/v1/feeds/{quote(feed, safe='')}/products/{quote(name, safe='')}", content=content)
        if answer.status_code == httpx.codes.CREATED:
            self.acknowledged[feed, answer.json()["sequence"]] = name, sha256(content).hexdigest()
            self.put_bytes[feed] += len(content)
        else:
            self.refused.append(f"{name} of {feed}: {answer.status_code} {answer.text}")


class HubUser(threading.Thread):
    """Sends one request after the other to the api, and checks the hub's health."""

    def __init__(self, hub: WholeHub, questions: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self.hub, self.questions = hub, questions
        self.over = threading.Event()
        self.answered = 0
        self.complaints: list[str] = []
        self.slowest_s = 0.0

    def run(self) -> None:
        """Runs until the end."""
        url, authorization = f"http://{self.hub.http}", self.hub.authorization
        with httpx.Client(base_url=url, timeout=60, headers=authorization) as client:
            while not self.over.wait(QUESTION_EACH_S):
                self._ask(client, self.questions[self.answered % len(self.questions)])

    def _ask(self, client: httpx.Client, question: str) -> None:
        began = time.monotonic()
        try:
            answer: Any = client.get(question)
            said = "" if answer.is_success else f"{answer.status_code} {answer.text[:500]}"
        except httpx.TransportError as error:
            said = repr(error)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        self.answered += 1
        if said and len(self.complaints) < COMPLAINTS_KEPT:
            self.complaints.append(f"{question}: {said}")


def end(*threads: Source | HubUser) -> None:
    """Ends them in any state."""
    for thread in threads:
        thread.over.set()
    for thread in threads:
        with suppress(RuntimeError):
            thread.join(timeout=60)


PRODUCT_EACH_S = 0.05
QUESTION_EACH_S = 0.1
COMPLAINTS_KEPT = 20
