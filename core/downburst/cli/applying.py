"""`downburst apply`: brings a hub to what a declaration says."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml  # type: ignore[import-untyped]

from downburst.cli.client import AsJson, HubAddress, HubClient, show
from downburst.errors import BadInput
from downburst.settings import DEFAULT_HUB


@dataclass(frozen=True, slots=True)
class Step:
    """One change: what it is for people, and the question that makes it."""

    what: str
    method: str
    path: tuple[str, ...]
    body: Mapping[str, Any]


def apply(
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The declaration, YAML or JSON; - for standard input.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    hub: HubAddress = DEFAULT_HUB,
    as_json: AsJson = False,
) -> None:
    """Bring a hub to what a declaration says: feeds, LDM sources, sites with subscriptions, who may push.

    What the hub has beyond it stays. The changes are shown first; a second run finds nothing to do.

    Example: downburst import ldm --ldmd-conf etc/ldmd.conf > site.yaml; downburst apply -f site.yaml
    """
    wanted, client = _read(file), HubClient(hub)
    steps = list(_steps(wanted, _Known(client)))
    if as_json:
        show([{"change": step.what, **step.body} for step in steps])
    else:
        _tell(wanted, steps)
    if dry_run or not steps:
        return
    if not yes and not typer.confirm(f"make these {len(steps)} changes?", err=True):
        raise BadInput("nothing was changed")
    for done, step in enumerate(steps):
        try:
            client.ask(step.method, "v1", *step.path, json=step.body)
        except BadInput as error:
            raise BadInput(f"{done} of {len(steps)} changes were made; {step.what}: {error.sentence}") from error
    if not as_json:
        print(f"{len(steps)} changes made")


class _Known:
    """What the hub has."""

    def __init__(self, client: HubClient) -> None:
        self.feeds = {one["feed"]: one for one in client.ask("GET", "v1", "feeds")}
        self.sites = {one["site"]: one for one in client.ask("GET", "v1", "sites")}
        self.sources = {one["source"]: one for one in client.ask("GET", "v1", "ldm", "sources")}
        self.accepts = client.ask("GET", "v1", "ldm", "accepts")
        self.subscriptions = client.ask("GET", "v1", "subscriptions")


def _steps(wanted: Mapping[str, Any], known: _Known) -> Iterator[Step]:
    for feed in _entries(wanted, "feeds", "feed"):
        yield from _thing("feed", ("feeds",), feed, known.feeds.get(feed["feed"]))
    for source in _entries(wanted, "ldm_sources", "source", "feeds", "upstreams"):
        yield from _source(source, known.sources.get(source["source"]))
    for site in _entries(wanted, "sites", "site"):
        subscriptions = site.pop("subscriptions", [])
        yield from _thing("site", ("sites",), site, known.sites.get(site["site"]))
        yield from _subscriptions(site["site"], subscriptions, known)
    for line in _entries(wanted, "ldm_accepts", "feeds", "host"):
        whole = {"pattern": ".*"} | line
        if not any(all(one[name] == whole[name] for name in ("feeds", "pattern", "host")) for one in known.accepts):
            what = f"let hosts that match {whole['host']} push {whole['feeds']} {whole['pattern']}"
            yield Step(what, "POST", ("ldm", "accepts"), whole)


def _thing(
    kind: str, path: tuple[str, ...], wanted: dict[str, Any], known: Mapping[str, Any] | None
) -> Iterator[Step]:
    name = wanted[kind]
    if known is None:
        yield Step(f"add {kind} {name}{_said(wanted, kind)}", "POST", path, wanted)
        return
    other = {key: value for key, value in wanted.items() if key != kind and known.get(key) != value}
    if other:
        yield Step(f"change {kind} {name}{_said(other, kind)}", "PATCH", (*path, name), other)


def _source(wanted: dict[str, Any], known: Mapping[str, Any] | None) -> Iterator[Step]:
    whole: dict[str, Any] = {"pattern": ".*", "max_age_s": 3600} | wanted
    name = whole["source"]
    what = f"LDM source {name}: {whole['feeds']} {whole['pattern']} from {', '.join(whole['upstreams'])}"
    if known is None:
        yield Step(f"add {what}", "POST", ("ldm", "sources"), whole)
    elif any(known.get(key) != value for key, value in whole.items()):
        yield Step(f"change {what}", "PUT", ("ldm", "sources", name), whole)


def _subscriptions(site: str, wanted: list[dict[str, Any]], known: _Known) -> Iterator[Step]:
    names = ("feed", "pattern", "not_pattern")
    has = {tuple(one[name] for name in names) for one in known.subscriptions if one["site"] == site}
    for wish in wanted:
        if not isinstance(wish, dict) or "feed" not in wish:
            raise BadInput(f"a subscription of site {site} names no feed; correct the file")
        whole = {"pattern": ".*", "not_pattern": None} | wish
        if tuple(whole[name] for name in names) not in has:
            but = f" but not {whole['not_pattern']}" if whole["not_pattern"] else ""
            what = f"subscribe {site} to {whole['feed']} {whole['pattern']}{but}"
            body = {key: value for key, value in whole.items() if value is not None}
            yield Step(what, "POST", ("sites", site, "subscriptions"), body)


def _entries(wanted: Mapping[str, Any], part: str, *needed: str) -> Iterator[dict[str, Any]]:
    """The entries of a part, without the word where each comes from."""
    for entry in wanted.get(part) or []:
        missing = [name for name in needed if not isinstance(entry, dict) or name not in entry]
        if missing:
            raise BadInput(f"an entry of {part} has no {missing[0]}: {entry!r}; correct the file")
        yield {key: value for key, value in entry.items() if key != "at"}


def _read(file: Path) -> Mapping[str, Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
        wanted = yaml.safe_load(text)
    except OSError as error:
        raise BadInput(f"{file} can't be read: {error.strerror}; check the path") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{file} is no YAML: {str(error).splitlines()[0]}; correct it") from error
    if not isinstance(wanted, dict):
        raise BadInput(f"{file} holds no declaration; see `downburst import ldm`")
    unknown = sorted(set(wanted) - APPLIED - PASSED_OVER)
    if unknown:
        raise BadInput(f"{file} says {unknown[0]}, which nobody knows; parts are {', '.join(sorted(APPLIED))}")
    return wanted


def _tell(wanted: Mapping[str, Any], steps: list[Step]) -> None:
    for step in steps:
        print(step.what)
    if not steps:
        print("the hub has all of it; nothing to change")
    for name, value in (wanted.get("settings") or {}).items():
        print(f"not applied: setting {name} = {value}; it belongs into the hub's settings file", file=sys.stderr)
    if wanted.get("actions"):
        count = len(wanted["actions"])
        print(f"not applied: {count} actions of pqact; sites run none, keep pqact there", file=sys.stderr)


def _said(values: Mapping[str, Any], kind: str) -> str:
    said = ", ".join(f"{key} {value}" for key, value in values.items() if key != kind)
    return f": {said}" if said else ""


APPLIED = {"feeds", "ldm_sources", "sites", "ldm_accepts"}
PASSED_OVER = {"settings", "actions", "no_equivalent"}
"""Parts that are for people."""
