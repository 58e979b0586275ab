"""What LDM's files say, as a declaration for a hub and its sites, with what has no equivalent and why."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from downburst.ldm.action_file import Action, program
from downburst.ldm.feed_types import ANY, each_feed, feed_type_name
from downburst.ldm.hosts import host_matches, is_loopback, named_hosts
from downburst.ldm.lines import Spot
from downburst.ldm.registry import size_bytes
from downburst.ldm.server_file import LDM_PORT, Accept, Allow, Exec, Multicast, Request, Statement


@dataclass(slots=True)
class Declaration:
    """The result; `document` is what people and programs read."""

    feeds: list[dict[str, Any]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    sites: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    no_equivalent: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """All parts that are not empty."""
        parts = {
            "settings": self.settings,
            "feeds": self.feeds,
            "ldm_requests": self.requests,
            "sites": self.sites,
            "actions": self.actions,
            "no_equivalent": self.no_equivalent,
        }
        return {name: part for name, part in parts.items() if part}

    def without(self, where: Spot | str, what: str, why: str) -> None:
        """Notes what has no equivalent."""
        self.no_equivalent.append({"at": str(where), "line": what, "why": why})


def declare(
    statements: Sequence[Statement], actions: Sequence[Action] = (), registry: dict[str, str] | None = None
) -> Declaration:
    """Everything the files say, each line either declared or among what has no equivalent."""
    made = Declaration()
    _settings(made, registry or {})
    _requests(made, [one for one in statements if isinstance(one, Request)])
    _sites(made, [one for one in statements if isinstance(one, Allow)])
    for one in statements:
        _others(made, one)
    _feeds(made, statements, registry or {})
    for action in actions:
        _action(made, action)
    return made


def _requests(made: Declaration, requests: Sequence[Request]) -> None:
    """The first request for a class is its primary, as LDM begins."""
    seen: set[tuple[int, str]] = set()
    for one in requests:
        key = (one.feeds, one.pattern)
        made.requests.append(
            {
                "from": one.host if one.port == LDM_PORT else f"{one.host}:{one.port}",
                "feed": feed_type_name(one.feeds),
                "pattern": one.pattern,
                "mode": "alternate" if key in seen else "primary",
                "at": str(one.spot),
            }
        )
        seen.add(key)
        _pattern(made, one.spot, one.pattern)


def _sites(made: Declaration, lines: Sequence[Allow]) -> None:
    """A site for each host that a line names; for each of its feeds the first line that knows it decides."""
    hosts: dict[str, Spot] = {}
    for line in lines:
        named = named_hosts(line.host)
        if is_loopback(line.host):
            continue
        if named is None:
            why = "the pattern names no single host; add each site by name (downburst sites add) with these feeds"
            made.without(line.spot, _allow_text(line), why)
            continue
        for host in named:
            hosts.setdefault(host, line.spot)
    for host, spot in hosts.items():
        _site(made, host, spot, lines)


def _site(made: Declaration, host: str, spot: Spot, lines: Sequence[Allow]) -> None:
    feeds, decided = 0, 0
    for line in (line for line in lines if host_matches(line.host, host)):
        fresh = line.feeds & ~decided
        decided |= line.feeds
        feeds |= fresh
        if fresh and (line.ok or line.not_ok):
            why = (
                f"a site's rights are whole feeds; let {host} subscribe with this pattern and not-pattern, "
                "or keep what it may not have in a feed of its own"
            )
            made.without(line.spot, _allow_text(line), why)
    made.sites.append({"site": host, "allow": ["*"] if feeds == ANY else each_feed(feeds), "at": str(spot)})


def _others(made: Declaration, one: Statement) -> None:
    match one:
        case Accept():
            text = f"ACCEPT {feed_type_name(one.feeds)} {one.pattern} {one.host}"
            made.without(
                one.spot, text, "nothing is pushed into a hub by LDM yet; `downburst put` and watched directories are"
            )
        case Exec():
            found = program(one.command)
            why = PROGRAMS.get(found, "a hub starts no programs; have systemd start it beside the hub")
            made.without(one.spot, f"EXEC {one.command}", why)
        case Multicast():
            why = "legs are planned, not configured: the scheduler takes multicast where it is the better way"
            made.without(one.spot, one.words, why)


def _feeds(made: Declaration, statements: Sequence[Statement], registry: dict[str, str]) -> None:
    """The feeds that are asked for by name. Products are the same when LDM takes them for the same: by content."""
    bits = 0
    for one in statements:
        if isinstance(one, Request) and one.feeds & ANY == ANY:
            why = "ANY names no feeds; write down those that come (notifyme shows them): each has a log and a plan"
            made.without(one.spot, f"REQUEST ANY {one.pattern} {one.host}", why)
        elif isinstance(one, Request):
            bits |= one.feeds
    size = size_bytes(registry.get("/queue/size", ""))
    for name in (names := each_feed(bits)):
        feed: dict[str, Any] = {"feed": name, "class": CLASSES.get(name, "observation")}
        if size is not None:
            # LDM's queue is one for all feeds; logs are one for each.
            feed["retention_bytes"] = max(size // len(names), SMALLEST_LOG_BYTES)
        made.feeds.append(feed)


def _action(made: Declaration, action: Action) -> None:
    made.actions.append(
        {
            "feed": feed_type_name(action.feeds),
            "pattern": None if action.is_rest else action.pattern,
            "do": action.name.lower(),
            **({"options": list(action.options)} if action.options else {}),
            **({"path" if "FILE" in action.name else "command": action.arguments} if action.arguments else {}),
            "at": str(action.spot),
        }
    )
    if action.is_rest:
        return
    _pattern(made, action.spot, action.pattern)


def _settings(made: Declaration, registry: dict[str, str]) -> None:
    for key, value in registry.items():
        if key in SETTINGS:
            made.settings[SETTINGS[key]] = int(value) if value.isdecimal() else value
        elif key in REASONS:
            made.without("registry", f"{key} = {value}", REASONS[key])


def _pattern(made: Declaration, spot: Spot, pattern: str) -> None:
    """LDM takes expressions that a hub refuses, since they are never meant or can't be matched in linear time."""
    found = UNUSABLE.search(re.sub(r"\[\^?\]?[^]]*\]", "", pattern))
    if found:
        why = f"patterns have no {found[0]}: " + (
            "back-references can't be matched in linear time"
            if found[0][1].isdigit()
            else "LDM reads it as the letter itself"
        )
        made.without(spot, pattern, why)


def _allow_text(line: Allow) -> str:
    return " ".join(["ALLOW", feed_type_name(line.feeds), line.host, *filter(None, (line.ok, line.not_ok))])


PROGRAMS = {
    "pqact": "sites run no actions of their own yet; the entries are under actions, and files appear in received/",
    "rtstats": "a hub measures every delivery itself: downburst latency, GET /v1/latency, /metrics",
    "pqsurf": "bulletins are not split; keep pqsurf beside a site that needs it",
    "noaaportIngester": "have it write files, and watch their directory (settings: watch)",
    "dvbs_multicast": "have its products written as files, and watch their directory (settings: watch)",
    "pqexpire": "logs keep their feeds' retention themselves",
    "scour": "old files are removed where they are used; keep scour beside the site",
}
"""Programs of LDM that an EXEC starts, and what there is instead."""

SETTINGS = {
    "/hostname": "origin",
    "/server/max-latency": "ldm.max_latency_s",
    "/server/time-offset": "ldm.time_offset_s",
    "/server/port": "ldm.port",
    "/server/ip-addr": "ldm.address",
    "/server/max-clients": "ldm.max_clients",
}
"""Keys of the registry that a declaration carries."""

REASONS = {
    "/queue/path": "each feed has its log under the hub's data directory",
    "/queue/slots": "logs have no slots",
    "/server/enable-anti-DOS": "older connections from an address are not ended by newer ones",
    "/reconciliation-mode": "retention is kept by hours and bytes; what was still due is told as expired",
    "/pqact/config-path": "name the file with --pqact-conf",
    "/server/config-path": "name the file with --ldmd-conf",
}
"""Keys of the registry that mean nothing to a hub, and why. Others, of log files and plots, are passed over."""

CLASSES = {
    "CONDUIT": "grid",
    "NGRID": "grid",
    "GEM": "grid",
    "FNMOC": "grid",
    "HDS": "grid",
    "NEXRAD2": "grid",
    "FNEXRAD": "grid",
    "SATELLITE": "bulk",
    "NIMAGE": "bulk",
    "NOTHER": "bulk",
    "UNIWISC": "bulk",
}
"""Priorities to begin with; what is not here are observations and bulletins."""

SMALLEST_LOG_BYTES = 100_000_000
UNUSABLE = re.compile(r"\\[1-9]|\\[A-Za-z](?<!\\[wWsSbB])")
