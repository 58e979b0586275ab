"""Connections: limits on their number, in all and per address, and on the time for a request or an answer.

uvicorn limits none of this except idle time between requests, so its protocol over h11 gets timers here (ADR 41).
"""

import asyncio
import json
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from downburst.foundation.errors import TooMany
from downburst.network.addresses import network_of
from downburst.settings.limits import LimitSettings
from downburst_api.border.budgets import Budget
from downburst_api.border.problems import MEDIA_TYPE
from downburst_api.border.proxies import is_proxy


class Connections:
    """Makes the protocol of each connection of one server, and counts them."""

    def __init__(self, limits: LimitSettings, proxies: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        self.limits = limits
        self._proxies = proxies
        self.all = Budget(limits.connections, what="connections")
        self.by_address = Budget(limits.connections_per_address, what="connections from this address")

    def __call__(self, *arguments: Any, **named: Any) -> "BoundedProtocol":
        """Creates a connection, as uvicorn's protocol factory."""
        return BoundedProtocol(self, *arguments, **named)

    def enter(self, address: str) -> None:
        """Counts a connection; refuses one above the limit. Named proxies carry the connections of many clients."""
        self.all.take("")
        if is_proxy(self._proxies, address):
            return
        try:
            self.by_address.take(network_of(address))
        except TooMany:
            self.all.give_back("")
            raise

    def leave(self, address: str) -> None:
        """Uncounts a connection that has ended."""
        self.all.give_back("")
        if not is_proxy(self._proxies, address):
            self.by_address.give_back(network_of(address))


class BoundedProtocol(H11Protocol):
    """One connection: aborted if the request's head does not arrive in time, or the answer is not taken in time."""

    def __init__(self, owner: Connections, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._owner = owner
        self._counted: str | None = None
        self._head_due: asyncio.TimerHandle | None = None
        self._answer_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Counts the connection, or refuses it before anything of it is read."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        try:
            self._owner.enter(address)
        except TooMany as error:
            transport.write(_refusal(error))
            transport.close()
            return
        self._counted = address
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        for timer in (self._head_due, self._answer_due):
            if timer is not None:
                timer.cancel()
        if self._counted is not None:
            self._owner.leave(self._counted)
            self._counted = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Processes received data."""
        if self._counted is None:
            return
        super().data_received(data)
        self._watch_head()

    def pause_writing(self) -> None:
        """The client reads more slowly than the answer is written."""
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        """The client has read nearly all of it."""
        if self._answer_due is not None:
            self._answer_due.cancel()
            self._answer_due = None
        super().resume_writing()

    def _watch_head(self) -> None:
        """Limits the time for the head, from its first byte on; between two requests uvicorn's idle timeout runs."""
        if self.conn.their_state is not h11.IDLE:
            if self._head_due is not None:
                self._head_due.cancel()
                self._head_due = None
        elif self._head_due is None:
            self._head_due = self.loop.call_later(self._owner.limits.head_s, self.transport.abort)

    def _watch_answer(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._answer_due = self.loop.call_later(self._owner.limits.stalled_s, self._end_if_stalled, left)

    def _end_if_stalled(self, before_bytes: int) -> None:
        """Aborts if the client took less than `LEAST_TAKEN_BYTES` in this time; otherwise starts the timer again."""
        if self.transport.get_write_buffer_size() > before_bytes - LEAST_TAKEN_BYTES:
            self.transport.abort()
        else:
            self._watch_answer()


def _refusal(error: TooMany) -> bytes:
    """An answer to a request that is not read."""
    body = json.dumps(
        {
            "type": f"urn:downburst:problem:{error.code}",
            "title": error.title,
            "status": error.status,
            "detail": error.sentence,
            "code": error.code,
        }
    )
    head = (
        f"HTTP/1.1 {error.status} Too Many Requests\r\ncontent-type: {MEDIA_TYPE}\r\nconnection: close\r\n"
        f"retry-after: {error.extra['retry_after_s']}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return f"{head}{body}".encode("ascii")


LEAST_TAKEN_BYTES = 4_096
