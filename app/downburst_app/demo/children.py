"""The processes of a demonstration: started tethered to this one, watched, and stopped by their process id."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from downburst.foundation.errors import Failure
from downburst.host.parent_death import bound_to_parent


class Child:
    """One running process with its output in a log file."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """True until it has ended."""
        return self._process.returncode is None

    async def ended(self) -> Failure:
        """Waits until the process ends by itself and returns the manner of its end."""
        code = await self._process.wait()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return Failure(f"{self.name} {how}; the end of its log {self.log}:\n{self.last_words()}")

    async def stop(self, *, patience_s: float = 20.0) -> bool:
        """Asks the process to end, and kills it if it does not; False if it had to be killed or failed."""
        if not self.running:
            return False
        self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience_s):
                return await self._process.wait() == 0
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            return False

    def last_words(self, *, lines: int = 12) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(f"  | {line}" for line in text) or "  | (nothing)"


class Children:
    """All processes of a demonstration, stopped in the reverse order of their start."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._started: list[Child] = []

    async def start(self, name: str, argv: Sequence[str]) -> Child:
        """Starts a program in a session of its own, so that Ctrl-C reaches only the demonstration.

        Settings in the environment are meant for other hubs and are removed from it.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *bound_to_parent(argv),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if not name.startswith("DOWNBURST_")},
            )
        child = Child(name, process, log)
        self._started.append(child)
        return child

    async def stop(self, *, kind: str = "") -> list[str]:
        """Stops those named with the prefix `kind`, sites before the hub; returns those that did not end cleanly."""
        ending = [child for child in reversed(self._started) if child.name.startswith(kind)]
        self._started = [child for child in self._started if child not in ending]
        hub = [child for child in ending if child.name == "hub"]
        others = [child for child in ending if child.name != "hub"]
        ended = await asyncio.gather(*(child.stop() for child in others))
        ended += [await child.stop() for child in hub]
        return [child.name for child, well in zip(others + hub, ended, strict=True) if not well]

    async def first_end(self) -> Failure:
        """Waits until any of them ends by itself, including those started during the wait."""
        while True:
            for child in self._started:
                if not child.running:
                    return await child.ended()
            await asyncio.sleep(LOOK_EVERY_S)


LOOK_EVERY_S = 0.2
