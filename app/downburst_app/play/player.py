"""Sends planned products to a hub over HTTP when they are due, and reports its own lag."""

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import quote

import numpy as np

from downburst.foundation.errors import BadInput, DownburstError, Failure
from downburst.host.local_token import authorization
from downburst_app.play.playing import Body, FileBody, Planned, WholeBody, sha256_of, whole
from downburst_app.play.uploads import Answer, Connect, Uploads

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Sent:
    """A product about to be sent: recorded before the first byte leaves, so that a check can rely on it."""

    feed: str
    product_id: str
    size_bytes: int
    sha256: str


@dataclass(slots=True)
class PlaySummary:
    """The result of a play. `slip_*` are the seconds from a product's due time to the start of its sending."""

    products: int = 0
    bytes: int = 0
    duplicates: int = 0
    retries: int = 0
    wall_s: float = 0.0
    slip_p50_s: float = 0.0
    slip_p99_s: float = 0.0
    slip_max_s: float = 0.0
    per_feed: dict[str, int] = field(default_factory=dict)

    @property
    def rate_bps(self) -> float:
        """Product bits a second, over the whole play."""
        return self.bytes * 8 / self.wall_s if self.wall_s > 0 else 0.0


class Player:
    """Plays products through one hub's PUT route, at most `concurrency` at a time, over persistent connections.

    A request to a hub that is away (it restarts, its node restarts) is repeated for `patience_s`; the feed's
    duplicate key drops a product with a lost first acknowledgement. A refusal ends the play with the hub's own
    sentence.
    """

    def __init__(
        self,
        hub: str,
        *,
        concurrency: int = 16,
        patience_s: float = 60.0,
        before_send: Callable[[Sent], None] | None = None,
        connect: Connect | None = None,
    ) -> None:
        self._hub = hub
        self._uploads = Uploads(hub, connect=connect)
        self._patience_s = patience_s
        self._before_send = before_send
        self._slots = asyncio.Semaphore(concurrency)
        self._slips_s: deque[float] = deque(maxlen=1_000_000)
        self._began_s = 0.0
        self._authorization: dict[str, str] = {}
        self.summary = PlaySummary()
        """Filled while the play runs, complete when it ends."""

    async def play(self, products: Iterable[Planned]) -> PlaySummary:
        """Sends each product when it is due; returns after the last acknowledgement."""
        self._began_s = time.monotonic()
        self._authorization = authorization(self._hub)
        try:
            await self._send_all(products)
        except ExceptionGroup as group:
            # Before 3.11.4 an error that is raised in an `except*` comes out in a group of its own.
            ours, rest = group.split(DownburstError)
            if ours is None or rest is not None:
                raise
            raise _leaf(ours) from None
        finally:
            self._uploads.close()
            self._sum_up()
        return self.summary

    async def _send_all(self, products: Iterable[Planned]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for product in products:
                await self._until(product.at_s)
                await self._slots.acquire()
                task = tasks.create_task(self._send(product))
                task.add_done_callback(lambda _: self._slots.release())

    async def _until(self, at_s: float) -> None:
        wait_s = self._began_s + at_s - time.monotonic()
        await asyncio.sleep(max(wait_s, 0.0))

    async def _send(self, product: Planned) -> None:
        content = await self._content(product.body)
        if self._before_send is not None:
            sha256 = await _off_loop(sha256_of, product.body if content is None else WholeBody(content))
            self._before_send(Sent(product.feed, product.product_id, product.body.size_bytes, sha256))
        self._slips_s.append(time.monotonic() - self._began_s - product.at_s)
        path = f"/v1/feeds/{quote(product.feed, safe='')}/products/{quote(product.product_id, safe='')}"
        headers = {
            "Downburst-Created": str(time.time_ns() // 1000),
            "Content-Length": str(product.body.size_bytes),
            "Content-Type": "application/octet-stream",
            **self._authorization,
        }
        answer = await self._put(path, headers=headers, content=content, body=product.body)
        self._count(product, duplicate=answer.status == HTTPStatus.OK)

    async def _content(self, body: Body) -> bytes | None:
        """The bytes of a body small enough for memory; None: it is read while it is sent."""
        if isinstance(body, FileBody) and body.size_bytes > LARGEST_WHOLE_BYTES:
            return None
        return await _off_loop(whole, body)

    async def _put(self, path: str, *, headers: dict[str, str], content: bytes | None, body: Body) -> Answer:
        give_up_s, wait_s = time.monotonic() + self._patience_s, FIRST_RETRY_S
        while True:
            try:
                pieces = _pieces(body) if content is None else content
                answer = await self._uploads.put(path, headers=headers, pieces=pieces)
                if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    return self._accepted(answer)
                sentence = self._sentence(answer)
            except (ConnectionError, TimeoutError) as error:
                sentence = f"the hub at {self._hub} does not answer ({error or type(error).__name__})"
            if time.monotonic() >= give_up_s:
                raise Failure(f"{sentence}; gave up after {self._patience_s:g} s: check the hub, then play again")
            self.summary.retries += 1
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_RETRY_S)

    def _accepted(self, answer: Answer) -> Answer:
        if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
            return answer
        raise BadInput(self._sentence(answer), answered=answer.status)

    def _sentence(self, answer: Answer) -> str:
        """The sentence of the hub's problem document, or the bare status if the server is no hub."""
        try:
            return str(json.loads(answer.text)["detail"])
        except (ValueError, KeyError, TypeError):
            return f"{self._hub} answered {answer.status} without a reason; check that it is a Downburst hub"

    def _count(self, product: Planned, *, duplicate: bool) -> None:
        summary = self.summary
        summary.products += 1
        summary.bytes += product.body.size_bytes
        summary.duplicates += duplicate
        summary.per_feed[product.feed] = summary.per_feed.get(product.feed, 0) + 1

    def _sum_up(self) -> None:
        self.summary.wall_s = time.monotonic() - self._began_s
        if self._slips_s:
            middle, high, top = np.quantile(np.array(self._slips_s), [0.5, 0.99, 1.0])
            self.summary.slip_p50_s, self.summary.slip_p99_s = float(middle), float(high)
            self.summary.slip_max_s = float(top)


async def _pieces(body: Body) -> AsyncIterator[bytes]:
    pieces = body.chunks()
    while (piece := await asyncio.to_thread(lambda: next(pieces, None))) is not None:
        yield piece


async def _off_loop(work: Callable[[Body], Result], body: Body) -> Result:
    """Processes a body in a thread, unless it is so small that the switch costs more."""
    if body.size_bytes < SMALL_BYTES:
        return work(body)
    return await asyncio.to_thread(work, body)


def _leaf(error: BaseException) -> BaseException:
    """The first error of a group: the others are consequences, or the same one again."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


FIRST_RETRY_S = 0.1
LONGEST_RETRY_S = 2.0
SMALL_BYTES = 64_000
LARGEST_WHOLE_BYTES = 64_000_000
