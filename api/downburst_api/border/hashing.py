"""Passwords are hashed one at a time, each with 64 MiB and all of a core; the queue for that is short, and fair."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from downburst.network.addresses import network_of
from downburst_api.border.budgets import Budget

P = ParamSpec("P")
T = TypeVar("T")


class Hashing:
    """The queue, with limits in all, per address and per name; refuses immediately when full."""

    def __init__(self) -> None:
        self._slot = asyncio.Semaphore(1)
        self._all = Budget(MOST_WAITING, what="sign-ins", retry_after_s=2)
        self._by_address = Budget(MOST_BY_ADDRESS, what="sign-ins from this address", retry_after_s=2)
        self._by_name = Budget(MOST_BY_NAME, what="sign-ins of this user", retry_after_s=2)

    async def run(self, address: str, name: str, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs the work in a thread when its turn comes; raises `TooMany` if too many wait."""
        with (
            self._all.held(""),
            self._by_address.held(network_of(address)),
            self._by_name.held(name),
        ):
            async with self._slot:
                return await asyncio.to_thread(work, *arguments, **named)


MOST_WAITING = 32
"""Some seconds of work for one core."""
MOST_BY_ADDRESS = 6
MOST_BY_NAME = 3
