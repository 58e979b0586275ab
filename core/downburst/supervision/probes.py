"""Proof that a process works: small end-to-end tries, again and again, each within a limit and never twice at a time.

Whoever asks how it stands gets what the last round found, so that asking costs nothing, however often it is done.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from downburst.foundation.errors import DownburstError
from downburst.supervision.tasks import call, keep, start

Probe = Callable[[], Awaitable[object]]
"""Does some real work; raises why it could not."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe found."""

    name: str
    fault: str | None
    """Why it failed; None: it passed."""
    took_ms: float


class Probes:
    """The probes of one process and what they found last."""

    def __init__(
        self,
        probes: Mapping[str, Probe],
        *,
        after_round: Callable[["Probes"], Awaitable[None]] | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._probes = probes
        self._after_round = after_round
        self._now_s = now_s
        self._at_work: dict[str, asyncio.Task[str | None]] = {}
        self._found: dict[str, Probed] = {}
        self._failing_since_s: dict[str, float] = {}
        self._round_s: float | None = None

    async def run(self) -> None:
        """Probes for good."""
        await keep("probes.round", self.look, every_s=EVERY_S)

    async def look(self) -> None:
        """One round: every probe at the same time."""
        late_s = 0.0 if self._round_s is None else self._now_s() - self._round_s - EVERY_S - LIMIT_S
        found = await asyncio.gather(*(self._one(name) for name in self._probes))
        loop_fault = None if late_s < LOOP_LATE_S else f"no progress for {late_s:.1f} s"
        for probed in (*found, Probed("event-loop", loop_fault, 0.0)):
            self._found[probed.name] = probed
            if probed.fault is None:
                self._failing_since_s.pop(probed.name, None)
            else:
                self._failing_since_s.setdefault(probed.name, self._now_s())
        self._round_s = self._now_s()
        if self._after_round is not None:
            await self._after_round(self)

    def all(self) -> list[Probed]:
        """What each probe found last; old findings are none."""
        if self._round_s is None:
            return [Probed("event-loop", "the first round of probes has not ended yet", 0.0)]
        age_s = self._now_s() - self._round_s
        if age_s > STALE_S:
            return [*self._found.values(), Probed("rounds", f"no probes finished for {age_s:.0f} s", 0.0)]
        return list(self._found.values())

    def failing(self, *names: str) -> list[Probed]:
        """Those that failed, of the named ones or of all."""
        return [one for one in self.all() if one.fault is not None and (not names or one.name in (*names, *_OWN))]

    def failing_s(self, name: str) -> float:
        """For how many seconds a probe has failed; 0: it passed last."""
        since_s = self._failing_since_s.get(name)
        return 0.0 if since_s is None else self._now_s() - since_s

    async def _one(self, name: str) -> Probed:
        began_s = self._now_s()
        task = self._at_work.get(name)
        if task is None:
            task = self._at_work[name] = start("probes.one", _fault_of(name, self._probes[name]))
        done, _ = await asyncio.wait({task}, timeout=LIMIT_S)
        took_ms = 1_000 * (self._now_s() - began_s)
        if not done:
            # It is left at work: another one behind it would only wait as well.
            return Probed(name, f"no answer within {LIMIT_S:g} s", took_ms)
        del self._at_work[name]
        return Probed(name, task.result(), took_ms)


async def _fault_of(name: str, probe: Probe) -> str | None:
    try:
        await call(f"probe.{name}", probe)
    except DownburstError as error:
        return error.sentence
    except Exception as error:  # noqa: BLE001
        return why(error)
    return None


def why(error: Exception) -> str:
    """One line about an error; the probe that failed is the alarm."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


_OWN = ("event-loop", "rounds")
EVERY_S = 5.0
LIMIT_S = 10.0
"""A full disk is slow, not dead, and a busy machine too."""
STALE_S = 45.0
LOOP_LATE_S = 5.0
