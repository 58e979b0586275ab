"""Actions that an incident suggests."""

from collections.abc import Mapping, Sequence
from typing import Any

from downburst.domain.alarms import AlarmKind
from downburst_api.overview.wrong import Wrong
from downburst_contract.now.incidents import ActionKind


def actions_of(wrong: Wrong) -> list[dict[str, Any]]:
    """At most two actions with their targets, the most likely first."""
    fault, number = wrong.fault, wrong.subject if wrong.kind is AlarmKind.CIRCUIT else ""
    circuit = int(number) if number.isdecimal() else None
    targets = {"site": fault.site, "feed": fault.feed, "circuit": circuit}
    by_default = (ActionKind.OPEN_SITE,) if fault.site else (ActionKind.OPEN_FEED,) if fault.feed else ()
    wanted = ACTIONS.get(wrong.kind, by_default) if wrong.kind else by_default
    return [
        {"kind": kind} | {name: value if name in _ABOUT[kind] else None for name, value in targets.items()}
        for kind in wanted
        if all(targets[name] is not None for name in _ABOUT[kind])
    ]


_ABOUT: Mapping[ActionKind, Sequence[str]] = {
    ActionKind.OPEN_SITE: ("site",),
    ActionKind.OPEN_FEED: ("feed",),
    ActionKind.OPEN_LATENCY: ("site", "feed"),
    ActionKind.OPEN_CIRCUIT: ("circuit",),
    ActionKind.PROBE_PATH: ("site",),
    ActionKind.PREVIEW_MOVE: ("site", "feed"),
}
ACTIONS: Mapping[AlarmKind, Sequence[ActionKind]] = {
    AlarmKind.SITE_DOWN: (ActionKind.OPEN_SITE, ActionKind.PROBE_PATH),
    AlarmKind.OBJECTIVE: (ActionKind.PREVIEW_MOVE, ActionKind.OPEN_LATENCY),
    AlarmKind.STALLED: (ActionKind.OPEN_SITE, ActionKind.PROBE_PATH),
    AlarmKind.HEARTBEAT: (ActionKind.OPEN_SITE, ActionKind.PROBE_PATH),
    AlarmKind.GROUP_LOSS: (ActionKind.PROBE_PATH, ActionKind.OPEN_SITE),
    AlarmKind.CIRCUIT: (ActionKind.OPEN_CIRCUIT, ActionKind.OPEN_SITE),
    AlarmKind.PREDICTION: (ActionKind.OPEN_FEED,),
}
"""Other kinds lead to the site or the feed."""
