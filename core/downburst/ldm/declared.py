"""LDM's files as a declaration for a hub and its sites, with the lines that have no equivalent and the reasons."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from downburst.ldm.action_file import Action, ActionFiles, program
from downburst.ldm.carried import AGES, listening, max_age_s, reason, rtstats_setting, setting_of
from downburst.ldm.feed_types import ANY, each_feed, feed_type_name, parse_feed_type
from downburst.ldm.hosts import host_matches, is_loopback, named_hosts
from downburst.ldm.judged import Judged
from downburst.ldm.lines import Spot
from downburst.ldm.registry import size_bytes
from downburst.ldm.server_file import LDM_PORT, Accept, Allow, Exec, Multicast, Request, Statement
from downburst.ldm.volumes import SMALLEST_LOG_BYTES, shares


@dataclass(slots=True)
class Declaration:
    """The result; `document` is the form for users and programs."""

    feeds: list[dict[str, Any]] = field(default_factory=list)
    sources: list[dict[str, Any]] = field(default_factory=list)
    accepts: list[dict[str, Any]] = field(default_factory=list)
    sites: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    remarks: list[dict[str, Any]] = field(default_factory=list)
    no_equivalent: list[dict[str, Any]] = field(default_factory=list)
    judged: Mapping[str, Judged] = field(default_factory=dict)
    """The verdicts of a hub's node by pattern; a pattern without one works as in LDM."""

    def document(self) -> dict[str, Any]:
        """All parts that are not empty."""
        parts = {
            "settings": self.settings,
            "feeds": self.feeds,
            "ldm_sources": self.sources,
            "sites": self.sites,
            "ldm_accepts": self.accepts,
            "actions": self.actions,
            "remarks": self.remarks,
            "no_equivalent": self.no_equivalent,
        }
        return {name: part for name, part in parts.items() if part}

    def remark(self, where: Spot | str, what: str, how: str) -> None:
        """Notes a line that is carried over in another form."""
        self.remarks.append({"at": str(where), "line": what, "as": how})

    def without(self, where: Spot | str, what: str, why: str) -> None:
        """Notes a line without an equivalent."""
        self.no_equivalent.append({"at": str(where), "line": what, "why": why})


def declare(
    statements: Sequence[Statement],
    actions: ActionFiles | None = None,
    registry: dict[str, str] | None = None,
    *,
    judged: Mapping[str, Judged] | None = None,
) -> Declaration:
    """All statements of the files; each line is either declared or listed as without an equivalent."""
    made, registry = Declaration(judged=judged or {}), registry or {}
    _registry(made, registry)
    _feeds(made, statements)
    _logs(made, registry)
    _sources(made, [one for one in statements if isinstance(one, Request)], max_age_s(registry))
    _sites(made, [one for one in statements if isinstance(one, Allow)])
    for one in statements:
        _others(made, one)
    _actions(made, actions or ActionFiles())
    if made.sites or made.accepts:
        made.settings.setdefault("ldm.listen", [listening({})])
    return made


def _sources(made: Declaration, requests: Sequence[Request], age_s: int | None) -> None:
    """Makes a source for each class; its first request names the primary, as LDM starts."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    for one in requests:
        if not _is_usable(made, one.spot, one.pattern):
            continue
        upstream = one.host if one.port == LDM_PORT else f"{one.host}:{one.port}"
        name = feed_type_name(one.feeds)
        taken = {source["source"] for source in found.values()}
        new = {
            "source": _free_name(name, taken),
            "feeds": name,
            "pattern": one.pattern,
            "upstreams": [],
            **({"max_age_s": age_s} if age_s is not None else {}),
            "at": "",
        }
        source = found.setdefault((one.feeds, one.pattern), new)
        if upstream not in source["upstreams"]:
            source["upstreams"].append(upstream)
        source["at"] = ", ".join(filter(None, (source["at"], str(one.spot))))
    made.sources.extend(found.values())


def _sites(made: Declaration, lines: Sequence[Allow]) -> None:
    """Makes a site for each host that a line names, and one for each pattern without host names, in line order.

    A site's subscriptions are the products that it may request; if several lines match a host, the first one decides.
    """
    for line in [one for one in lines if is_loopback(one.host)]:
        made.without(line.spot, _allow_text(line), LOOPBACK)
    lines = [line for line in lines if not is_loopback(line.host) and _are_usable(made, line)]
    used: set[Spot] = set()
    for line in lines:
        for host in named_hosts(line.host) or [line.host]:
            is_named = host != line.host
            if any(site["ldm_host"] == (f"^{re.escape(host)}$" if is_named else host) for site in made.sites):
                continue
            known = [one for one in lines if (host_matches(one.host, host) if is_named else one.host == host)]
            used |= _site(made, host, known, is_named=is_named)
    for line in [one for one in lines if one.spot not in used]:
        made.without(line.spot, _allow_text(line), _why_unused(made, line))


def _site(made: Declaration, host: str, lines: Sequence[Allow], *, is_named: bool) -> set[Spot]:
    """Makes the site of a host; returns the lines that granted it something."""
    decided = 0
    subscriptions: list[dict[str, Any]] = []
    used: list[Spot] = []
    for line in lines:
        fresh = line.feeds & ~decided
        decided |= line.feeds
        for feed in made.feeds:
            bits = parse_feed_type(feed["ldm_feed_type"])
            if bits & fresh:
                wish = {"feed": feed["feed"], "pattern": line.ok or ".*"}
                subscriptions.append(wish | ({"not_pattern": line.not_ok} if line.not_ok else {}))
                used.append(line.spot)
    taken = {site["site"] for site in made.sites}
    made.sites.append(
        {
            "site": _free_name(host, taken),
            "ldm_host": f"^{re.escape(host)}$" if is_named else host,
            "subscriptions": subscriptions,
            "at": ", ".join(map(str, dict.fromkeys(used or [lines[0].spot]))),
        }
    )
    return set(used)


def _why_unused(made: Declaration, line: Allow) -> str:
    if any(parse_feed_type(feed["ldm_feed_type"]) & line.feeds for feed in made.feeds):
        return "lines before it decide for all hosts and feeds that it names, as in LDM"
    return "no REQUEST asks for these feeds, so there is none here; add feeds that the hub gets from elsewhere"


def _free_name(text: str, taken: Collection[str]) -> str:
    """A name for a site or source: lower-case letters, digits, dots and dashes."""
    plain = re.sub(r"[^a-z0-9.-]+", "-", text.lower().replace("\\.", ".")).strip("-.")[:55] or "ldm"
    names = (plain if number == 1 else f"{plain}-{number}" for number in itertools.count(1))
    return next(name for name in names if name not in taken)


def _others(made: Declaration, one: Statement) -> None:
    match one:
        case Accept():
            if not all(_is_usable(made, one.spot, pattern) for pattern in (one.pattern, one.host)):
                return
            line = {"feeds": feed_type_name(one.feeds), "pattern": one.pattern, "host": one.host}
            made.accepts.append(line | {"at": str(one.spot)})
        case Exec():
            found = program(one.command)
            setting = rtstats_setting(one.command) if found == "rtstats" else None
            if setting and setting[0] not in made.settings:
                made.settings[setting[0]] = setting[1]
                made.remark(
                    one.spot, f"EXEC {one.command}", f"setting {setting[0]}; other options have no equivalent"
                )
                return
            why = PROGRAMS.get(found, "a hub starts no programs; have systemd start it beside the hub")
            made.without(one.spot, f"EXEC {one.command}", why)
        case Multicast():
            why = "legs are planned, not configured: the scheduler takes multicast where it is better"
            made.without(one.spot, one.words, why)


def _feeds(made: Declaration, statements: Sequence[Statement]) -> None:
    """The feeds requested by name. Products are duplicates when LDM treats them as such: by content."""
    bits = 0
    for one in statements:
        if isinstance(one, Request) and one.feeds & ANY == ANY:
            why = "ANY names no feeds; list the ones that come (notifyme shows them): each has a log and a plan"
            made.without(one.spot, f"REQUEST ANY {one.pattern} {one.host}", why)
        elif isinstance(one, Request):
            bits |= one.feeds
    for name in each_feed(bits):
        made.feeds.append(
            {
                "feed": name,
                "class": CLASSES.get(name, "observation"),
                "ldm_feed_type": name,
                "duplicate_rule": "signature",
            }
        )


def _logs(made: Declaration, registry: dict[str, str]) -> None:
    """Divides LDM's single queue among the logs of the feeds."""
    text = registry.get("/queue/size", "")
    size = size_bytes(text)
    if size is None or not made.feeds:
        if text:
            why = "it is not a size, or there are no feeds: each log has a limit of its own"
            made.without("registry", f"/queue/size = {text}", why)
        return
    sizes = shares(size, [feed["feed"] for feed in made.feeds])
    for feed in made.feeds:
        feed["retention_bytes"] = sizes[feed["feed"]]
    how = (
        "retention_bytes of each feed: LDM's queue is one for all feeds, a log belongs to one feed; it is "
        "divided by the "
        f"usual volume of feeds, each at least {SMALLEST_LOG_BYTES / 1e6:g} MB, {sum(sizes.values()) / 1e9:.1f} GB "
        "in all; when they have run for some days, downburst log advise shows the need of each"
    )
    made.remark("registry", f"/queue/size = {text}", how)


def _actions(made: Declaration, files: ActionFiles) -> None:
    made.actions.extend(_action(action) for action in files.actions)
    for spot, why in files.set_aside:
        made.without(spot, "the entry of pqact, which is set aside", why)
    for spot, why in files.notes:
        made.remark(spot, "the entry of pqact", why)


def _action(action: Action) -> dict[str, Any]:
    words: dict[str, Any] = {"path": action.words[0]} if action.does == "file" else {"command": list(action.words)}
    return {
        "feed": feed_type_name(action.feeds),
        "pattern": action.pattern,
        "do": action.does,
        **({"options": list(action.options)} if action.options else {}),
        **(words if action.words else {}),
        "at": str(action.spot),
    }


def _registry(made: Declaration, registry: dict[str, str]) -> None:
    """Handles every key with a value: a setting, a property of sources and feeds, or the reason why it has no use."""
    for key, value in registry.items():
        line = f"{key} = {value}"
        if found := setting_of(key, registry):
            made.settings[found[0]] = found[1]
            made.remark("registry", line, f"setting {found[0]}")
        elif key in AGES and max_age_s(registry) is not None:
            how = "max_age_s of each source, which is both: the start and the maximum age of a product"
            made.remark("registry", line, how)
        elif key != "/queue/size":
            made.without("registry", line, reason(key))


def _are_usable(made: Declaration, line: Allow) -> bool:
    return all(_is_usable(made, line.spot, pattern) for pattern in (line.host, line.ok, line.not_ok) if pattern)


def _is_usable(made: Declaration, spot: Spot, pattern: str) -> bool:
    """LDM accepts expressions that a hub refuses: mistakes, and those that can't be matched in linear time."""
    judged = made.judged.get(pattern, Judged())
    if judged.refused:
        made.without(spot, pattern, judged.refused)
    if judged.differs:
        made.remark(spot, pattern, judged.differs)
    return judged.refused is None


def _allow_text(line: Allow) -> str:
    return " ".join(["ALLOW", feed_type_name(line.feeds), line.host, *filter(None, (line.ok, line.not_ok))])


LOOPBACK = (
    "LDM's own programs come from this host; downburst's need no line. To let LDM's tools here query the "
    "hub, add a site with --ldm-host '^(localhost|127\\.0\\.0\\.1)$' and its subscriptions"
)

PROGRAMS = {
    "pqact": "a hub runs no actions; a site does, by the same file: downburst-node receive --actions pqact.conf",
    "rtstats": "there is one collector, and -h has to name it: the setting ldm.rtstats",
    "pqsurf": "bulletins are not split; keep pqsurf beside a site that needs it",
    "noaaportIngester": "have it write files, and watch their directory (settings: watch)",
    "dvbs_multicast": "have its products written as files, and watch their directory (settings: watch)",
    "pqexpire": "logs keep their feeds' retention themselves",
    "scour": "a site removes old files by the same file: downburst-node receive --scour scour.conf",
}
"""LDM programs that an EXEC starts, and their replacements."""

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
"""Initial priorities; feeds not listed carry observations and bulletins."""
