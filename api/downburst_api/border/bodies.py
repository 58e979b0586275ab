"""Request bodies, read here before any route sees them, within limits of size and time."""

import asyncio

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from downburst.foundation.errors import BadInput, RequestTooLarge, RequestTooSlow


class Body:
    """The body of one incoming request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")
        self._announced = int(length) if length.isascii() and length.isdecimal() else 0
        self._receive = receive
        self._whole: Message | None = None
        self.ended = self._announced == 0 and "transfer-encoding" not in headers
        """True if the body is complete."""

    def needs_bytes(self, most_bytes: int) -> int:
        """The budget that it needs: its declared length, or the limit if it comes in chunks."""
        return 0 if self.ended else min(self._announced or most_bytes, most_bytes)

    async def read(self, *, most_bytes: int, within_s: float) -> bytes:
        """Reads all of it, for later `receive` calls; refuses before more than `most_bytes` are in memory."""
        if self.ended:
            return b""
        if self._announced > most_bytes:
            raise _too_large(most_bytes)
        try:
            async with asyncio.timeout(within_s):
                body = await self._gathered(most_bytes)
        except TimeoutError:
            raise RequestTooSlow(f"the request was not complete within {within_s:g} s; send it again") from None
        self._whole = {"type": "http.request", "body": body, "more_body": False}
        return body

    async def receive(self) -> Message:
        """The next message of the body, for the application behind."""
        if self._whole is not None:
            whole, self._whole = self._whole, None
            return whole
        return await self._next()

    def closing(self, send: Send) -> Send:
        """Sends an answer; if the request is incomplete, the connection is closed, so that the rest is never read."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and not self.ended:
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        return sending

    async def _gathered(self, most_bytes: int) -> bytes:
        gathered = bytearray()
        while not self.ended:
            message = await self._next()
            if message["type"] == "http.disconnect":
                raise BadInput("the request was cut off; send it again")
            gathered += message.get("body", b"")
            if len(gathered) > most_bytes:
                raise _too_large(most_bytes)
        return bytes(gathered)

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self.ended = True
        return message


def _too_large(most_bytes: int) -> RequestTooLarge:
    return RequestTooLarge(
        f"this request may have a body of {most_bytes} bytes and has a longer one; send less at a time, or sign in",
        limit_bytes=most_bytes,
    )
