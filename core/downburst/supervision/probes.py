"""Proof that a process works: small repeated end-to-end tests, each with a time limit and never two at a time.

A status query gets the findings of the last round, so queries cost nothing, however often they are made.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from downburst.foundation.errors import DownburstError
from downburst.supervision.tasks import call, keep, start

Probe = Callable[[], Awaitable[object]]
"""Does some real work; raises an error with the reason of a failure."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The finding of a probe."""

    name: str
    fault: str | None
    """The reason of a failure; None: it passed."""
    took_ms: float


class Probes:
    """The probes of one process and their last findings."""

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
        """Runs the probes until cancelled."""
        await keep("probes.round", self.look, every_s=EVERY_S)

    async def look(self) -> None:
        """Runs one round: all probes in parallel."""
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
        """The last finding of each probe; findings that are too old add a fault."""
        if self._round_s is None:
            return [Probed("event-loop", "the first round of probes has not ended yet", 0.0)]
        age_s = self._now_s() - self._round_s
        if age_s > STALE_S:
            return [*self._found.values(), Probed("rounds", f"no probes finished for {age_s:.0f} s", 0.0)]
        return list(self._found.values())

    def failing(self, *names: str) -> list[Probed]:
        """The failed probes, of the named ones or of all."""
        return [one for one in self.all() if one.fault is not None and (not names or one.name in (*names, *_OWN))]

    def failing_s(self, name: str) -> float:
        """The seconds for which a probe has failed; 0: it passed last."""
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
            # The task continues: a second one behind it would only wait as well.
            return Probed(name, f"no answer within {LIMIT_S:g} s", took_ms)
        # A round beside this one waits for the same task, and one of the two is first.
        if self._at_work.get(name) is task:
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
    """One line about an error; the failed probe raises the alarm."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


_OWN = ("event-loop", "rounds")
EVERY_S = 5.0
LIMIT_S = 10.0
"""A full disk is slow, not dead, and a busy machine too."""
STALE_S = 45.0
LOOP_LATE_S = 5.0
