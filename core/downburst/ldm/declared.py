"""What LDM's files say, as a declaration for a hub and its sites, with what has no equivalent and why."""

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from downburst.ldm.action_file import Action, program
from downburst.ldm.feed_types import ANY, each_feed, feed_type_name, parse_feed_type
from downburst.ldm.hosts import host_matches, is_loopback, named_hosts
from downburst.ldm.lines import Spot
from downburst.ldm.registry import size_bytes
from downburst.ldm.server_file import LDM_PORT, Accept, Allow, Exec, Multicast, Request, Statement


@dataclass(slots=True)
class Declaration:
    """The result; `document` is what people and programs read."""

    feeds: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    accepts: list[dict[str, Any]] = field(default_factory=list)
    sites: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    no_equivalent: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """All parts that are not empty."""
        parts = {
            "settings": self.settings,
            "feeds": self.feeds,
            "ldm_sources": self.sources,
            "sites": self.sites,
            "ldm_accepts": self.accepts,
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
    _feeds(made, statements, registry or {})
    _sources(made, [one for one in statements if isinstance(one, Request)])
    _sites(made, [one for one in statements if isinstance(one, Allow)])
    for one in statements:
        _others(made, one)
    for action in actions:
        _action(made, action)
    return made


def _sources(made: Declaration, requests: Sequence[Request]) -> None:
    """A source for each class; the first request for it names its primary, as LDM begins."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for one in requests:
        upstream = one.host if one.port == LDM_PORT else f"{one.host}:{one.port}"
        name = feed_type_name(one.feeds)
        taken = {source["source"] for source in found.values()}
        new = {
            "source": _free_name(name, taken),
            "feeds": name,
            "pattern": one.pattern,
            "upstreams": [],
            "at": str(one.spot),
        }
        source = found.setdefault((one.feeds, one.pattern), new)
        if upstream not in source["upstreams"]:
            source["upstreams"].append(upstream)
        if source is new:
            _pattern(made, one.spot, one.pattern)
    made.sources.extend(found.values())


def _sites(made: Declaration, lines: Sequence[Allow]) -> None:
    """A site for each host that a line names, and one for each pattern that names none; in the order of the lines.

    What a site may ask for are its subscriptions; where several sites know a host, the first of them decides.
    """
    lines = [line for line in lines if not is_loopback(line.host)]
    for line in lines:
        for host in named_hosts(line.host) or [line.host]:
            is_named = host != line.host
            if any(site["ldm_host"] == (f"^{re.escape(host)}$" if is_named else host) for site in made.sites):
                continue
            known = [one for one in lines if (host_matches(one.host, host) if is_named else one.host == host)]
            _site(made, host, known, line, is_named=is_named)


def _site(made: Declaration, host: str, lines: Sequence[Allow], first: Allow, *, is_named: bool) -> None:
    decided = 0
    subscriptions: list[dict[str, Any]] = []
    for line in lines:
        fresh = line.feeds & ~decided
        decided |= line.feeds
        for feed in made.feeds:
            bits = parse_feed_type(feed["ldm_feed_type"])
            if bits & fresh:
                wish = {"feed": feed["feed"], "pattern": line.ok or ".*"}
                subscriptions.append(wish | ({"not_pattern": line.not_ok} if line.not_ok else {}))
        for pattern in filter(None, (line.ok, line.not_ok)):
            _pattern(made, line.spot, pattern)
    if not subscriptions:
        why = "no REQUEST asks for these feeds, so there is none here; add the feeds that the hub gets otherwise"
        made.without(first.spot, _allow_text(first), why)
    taken = {site["site"] for site in made.sites}
    made.sites.append(
        {
            "site": _free_name(host, taken),
            "ldm_host": f"^{re.escape(host)}$" if is_named else host,
            "subscriptions": subscriptions,
            "at": str(first.spot),
        }
    )


def _free_name(text: str, taken: Collection[str]) -> str:
    """A name for a site or source: lower-case letters, digits, dots and dashes."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", text.lower().replace("\\.", ".")).strip("-.")[:55] or "ldm"
    names = (plain if number == 1 else f"{plain}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in taken)


def _others(made: Declaration, one: Statement) -> None:
    match one:
        case Accept():
            line = {"feeds": feed_type_name(one.feeds), "pattern": one.pattern, "host": one.host}
            made.accepts.append(line | {"at": str(one.spot)})
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
        feed: dict[str, Any] = {
            "feed": name,
            "class": CLASSES.get(name, "observation"),
            "ldm_feed_type": name,
            "duplicate_rule": "signature",
        }
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
