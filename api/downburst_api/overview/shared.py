"""The overview as text, made at most a few times a second for any number of pages."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fastapi.encoders import jsonable_encoder

from downburst.foundation.clock import Clock


@dataclass(slots=True)
class SharedOverview:
    """Holds the last text; requests during an update wait for it."""

    clock: Clock
    _lock: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    _text: str = field(init=False, default="")
    _made_at_s: float = field(init=False, default=-1.0)

    async def text(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> str:
        """The overview as JSON, at most `OLDEST_S` old."""
        async with self._lock:
            if not self._text or self.clock.monotonic_s() - self._made_at_s >= OLDEST_S:
                await self._write(make)
            return self._text

    async def fresh(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> str:
        """The overview as of now, for a client that changed something. Others get it too while it is new."""
        async with self._lock:
            await self._write(make)
            return self._text

    async def _write(self, make: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        self._text = json.dumps(await make(), separators=(",", ":"), default=_plain)
        self._made_at_s = self.clock.monotonic_s()


def _plain(value: object) -> Any:
    """Converts values without a form in JSON; the framework's encoder visits each value, which takes seconds."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return jsonable_encoder(value)


OLDEST_S = 0.2
"""Less than the shortest pause between two events, so that no event repeats its predecessor."""
