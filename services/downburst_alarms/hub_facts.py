"""Facts for the rules of alarms that only the hub's process has: sessions, its disk, its own errors."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from downburst.domain.backlog import Backlog
from downburst.domain.path_facts import GroupTried
from downburst.live.state import Damage, LiveState, RetentionWarning, SiteSession
from downburst.parts.names import Part
from downburst.supervision import FAULTS, HandlerFault


@dataclass(frozen=True, slots=True)
class HubFacts:
    """The present of a hub."""

    sessions: Mapping[str, SiteSession] = field(default_factory=dict)
    groups: Mapping[str, GroupTried] = field(default_factory=dict)
    """By site, the result of its last order to hear a group."""
    backlogs: Mapping[str, Backlog] = field(default_factory=dict)
    """By site, its backlog, if known."""
    retention: Mapping[str, RetentionWarning] = field(default_factory=dict)
    damages: Mapping[str, Damage] = field(default_factory=dict)
    """By feed, the findings of its log's last check."""
    disk_free_bytes: int | None = None
    disk_bytes: int | None = None
    faults: Sequence[HandlerFault] = ()
    """Recent unexpected errors of handlers in the hub's process."""
    silent_s: Mapping[str, float] = field(default_factory=dict)
    """Silent parts in separate processes, with the seconds of their silence."""


class Facts(Protocol):
    """The watch's source of facts: its own process, or the hub's."""

    async def of_hub(self, now: datetime) -> HubFacts:
        """The facts at this moment; raises `PartAway` if the hub is silent."""


class LiveFacts:
    """The facts in the hub's process."""

    def __init__(
        self, live: LiveState, data_dir: Path, *, silent: Callable[[], Mapping[Part, float]] = dict[Part, float]
    ) -> None:
        self._live = live
        self._data_dir = data_dir
        self._silent = silent

    async def of_hub(self, now: datetime) -> HubFacts:
        """The facts at this moment, as an immutable copy."""
        disk = shutil.disk_usage(self._data_dir)
        return HubFacts(
            sessions=dict(self._live.sessions),
            groups=self._live.paths.groups(),
            backlogs=self._live.backlogs(),
            retention=dict(self._live.retention_warnings),
            damages=dict(self._live.damages),
            disk_free_bytes=disk.free,
            disk_bytes=disk.total,
            faults=FAULTS.recent(now),
            silent_s={str(part): silent_s for part, silent_s in self._silent().items()},
        )
