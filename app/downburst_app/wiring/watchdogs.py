"""Proof that a hub works: probes from end to end; external watchdogs get their results, and a hung node restarts."""

from collections.abc import Awaitable, Callable, Mapping

from downburst.foundation.clock import Clock
from downburst.settings.alarms import AlarmSettings
from downburst.supervision.outside import DeadMan, tell_systemd
from downburst.supervision.probes import Probe, Probes
from downburst_worker.agent import Agent


class Watchdogs:
    """The probes of a hub, and what follows from their results."""

    def __init__(
        self,
        probes: Mapping[str, Probe],
        agent: Agent,
        settings: AlarmSettings,
        *,
        clock: Clock,
        say: Callable[[str], Awaitable[None]],
    ) -> None:
        self.probes = Probes(probes, after_round=self._after_round)
        self._agent = agent
        self._dead_man = DeadMan(settings.dead_man_url, settings.dead_man_s)
        self._clock = clock
        self._say = say

    async def _after_round(self, probes: Probes) -> None:
        """Reports progress and health to external watchdogs; restarts a hung node."""
        tell_systemd("WATCHDOG=1")
        if probes.failing_s("node") > HUNG_S and self._agent.running:
            await self._say(f"the node did not answer for {HUNG_S:.0f} s; it is being restarted")
            self._agent.restart_node()
        if not probes.failing():
            await self._dead_man.tell(self._clock.monotonic_s())


HUNG_S = 60.0
"""A node without any answer for this long is stopped or stuck; busy ones answer within seconds."""
