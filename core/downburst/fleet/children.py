"""Senders as child processes of this machine."""

import asyncio
import os
import random
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import httpx

from downburst.fleet.port import Standing
from downburst.foundation.clock import Clock, SystemClock
from downburst.foundation.errors import FleetAway
from downburst.host.parent_death import bound_to_parent
from downburst.supervision import keep, start


@dataclass(frozen=True, slots=True)
class Command:
    """The command that starts one sender, and the URL of its readiness."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    ready_url: str


class ChildFleet:
    """Each sender is a process in a session of its own; one that ends by itself is restarted after a delay.

    They end with this process, whatever the reason.
    """

    def __init__(self, command: Callable[[int], Command], *, drain_s: float, clock: Clock | None = None) -> None:
        self._command = command
        self._drain_s = drain_s
        self._clock = clock or SystemClock()
        # Probes connect to this machine only, even if its environment names a proxy.
        self._probes = httpx.AsyncClient(timeout=READY_S, trust_env=False)
        self._children: dict[int, _Child] = {}
        self._ending: dict[int, asyncio.Task[None]] = {}

    async def bring_to(self, senders: int) -> Standing:
        """Starts missing senders, and drains those beyond the number."""
        # A sender that still drains occupies the ports and the directory of its number.
        for number in set(range(senders)) - self._ending.keys():
            if number not in self._children:
                self._children[number] = _Child(self._command(number))
            await self._children[number].keep(self._clock.monotonic_s())
        for number in [number for number in self._children if number >= senders]:
            self._drain(number)
        return Standing(senders, await self._ready())

    async def standing(self) -> Standing:
        """The processes of this fleet."""
        return Standing(len(self._children), await self._ready())

    async def close(self) -> None:
        """Drains all senders, and waits until they have ended."""
        for number in list(self._children):
            self._drain(number)
        await asyncio.gather(*self._ending.values())
        await self._probes.aclose()

    def _drain(self, number: int) -> None:
        end = partial(self._children.pop(number).end, self._drain_s)
        # Retried: a sender left running would keep the ports of its number.
        ending = start("fleet.end-of-sender", keep("fleet.end-of-sender", end))
        self._ending[number] = ending
        ending.add_done_callback(lambda _: self._ending.pop(number))

    async def _ready(self) -> int:
        return sum(await asyncio.gather(*(child.is_ready(self._probes) for child in self._children.values())))


class _Child:
    def __init__(self, command: Command) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None
        self._started_s = 0.0
        self._not_before_s = 0.0
        self._backoff_s = FIRST_BACKOFF_S

    async def keep(self, now_s: float) -> None:
        """Starts the process if it is not running, with a limit on the frequency."""
        if self._process is not None and self._process.returncode is None:
            return
        if self._process is not None:
            self._process = None
            if now_s - self._started_s > HEALTHY_S:
                self._backoff_s = FIRST_BACKOFF_S
            self._not_before_s = now_s + self._backoff_s * random.uniform(0.5, 1.5)  # noqa: S311
            self._backoff_s = min(self._backoff_s * 2, LAST_BACKOFF_S)
        if now_s < self._not_before_s:
            return
        self._started_s = now_s
        try:
            self._process = await asyncio.create_subprocess_exec(
                *bound_to_parent(self._command.argv),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                env=dict(os.environ) | dict(self._command.environment),
            )
        except OSError as error:
            raise FleetAway(f"this machine can't start more processes ({error.strerror})") from error

    async def is_ready(self, probes: httpx.AsyncClient) -> bool:
        if self._process is None or self._process.returncode is not None:
            return False
        with suppress(httpx.HTTPError):
            return (await probes.get(self._command.ready_url)).is_success
        return False

    async def end(self, patience_s: float) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience_s):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 30.0
HEALTHY_S = 60.0
READY_S = 2.0
